"""Names, partitions, retention, templates: what provisioning and consumers rely on."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import EVENTS, DevicesJudged, FindingReported
from schemas.index_family import MAPPING_VERSION, Index
from schemas.indices import ATTEMPTS, INDICES, NODE_STATES, TRENDS
from schemas.topics import DEAD_LETTERS, TOPICS


def test_every_event_travels_on_exactly_one_topic_but_those_that_are_passed_on() -> None:
    passed_on = [FindingReported.TYPE, DevicesJudged.TYPE]
    published = sorted(event.TYPE for topic in TOPICS for event in topic.events)
    assert published == sorted([*(event.TYPE for event in EVENTS), *passed_on])


def test_event_types_are_unique_and_carry_their_version() -> None:
    types = [event.TYPE for event in EVENTS]
    assert len(set(types)) == len(types)
    assert all(re.fullmatch(r"io\.schedulerlog(\.[a-z]+)+\.v1", kind) for kind in types)


def test_topic_names_are_legal_and_do_not_collide_as_metrics() -> None:
    names = [topic.name for topic in TOPICS]
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) for name in names)
    # Kafka's metrics turn dots into underscores: two names must differ by more than that.
    assert len({name.replace(".", "_") for name in names}) == len(names)


def test_topics_take_the_records_that_are_written_to_them() -> None:
    assert all(topic.partitions >= 1 and topic.retention >= timedelta(days=1) for topic in TOPICS)
    assert all(topic.max_message_bytes >= 2 * MAX_VALUE_BYTES for topic in TOPICS)
    largest = max(topic.max_message_bytes for topic in TOPICS if topic is not DEAD_LETTERS)
    assert largest < DEAD_LETTERS.max_message_bytes, "a dead letter is a record with more headers"


@pytest.mark.parametrize("index", INDICES, ids=lambda index: index.alias)
def test_a_template_is_strict_and_says_its_version(index: Index) -> None:
    body = index.build_template("schedulerlog@custom", f"{index.alias}@custom")
    assert body["index_patterns"] == [f"{index.alias}-*"]
    # Of counts an alias shows those of minutes, until `retention` has counts of hours in place of some.
    only_minutes = {"filter": {"exists": {"field": "partition"}}}
    assert body["template"]["aliases"] == {index.alias: only_minutes if index is TRENDS else {}}
    assert body["template"]["mappings"]["dynamic"] == "strict"
    assert body["template"]["mappings"]["_meta"]["schedulerlog_mapping_version"] == MAPPING_VERSION
    # What comes later counts; settings in the index template itself would count more than all of them.
    assert body["composed_of"] == ["schedulerlog@settings", "schedulerlog@custom", f"{index.alias}@custom"]
    # But for the order of documents, which no operator has a reason to choose.
    assert body["template"].get("settings", {}) == (
        {"index": {"sort": {"field": ["node"]}}} if index.alias == "schedulerlog-occupancy" else {}
    )


def test_an_alias_names_a_field_of_the_same_family() -> None:
    for index in INDICES:
        kubernetes = index.build_template()["template"]["mappings"]["properties"]["k8s"]["properties"]
        for fields in kubernetes.values():
            for alias in fields["properties"].values():
                assert (alias["type"], index.properties[alias["path"]]["type"]) == ("alias", "keyword")
    attempts = INDICES[0].build_template()["template"]["mappings"]["properties"]["k8s"]["properties"]
    assert attempts == {
        "cluster": {"properties": {"name": {"type": "alias", "path": "cluster"}}},
        "namespace": {"properties": {"name": {"type": "alias", "path": "namespace"}}},
        "pod": {"properties": {"name": {"type": "alias", "path": "pod"}, "uid": {"type": "alias", "path": "pod_uid"}}},
        "node": {"properties": {"name": {"type": "alias", "path": "chosen"}}},
    }


def test_patterns_of_two_families_never_match_each_others_indices() -> None:
    for index in INDICES:
        for other in INDICES:
            assert index is other or not other.name(datetime(2026, 1, 1, tzinfo=UTC)).startswith(f"{index.alias}-")


def test_an_index_is_named_by_the_day_of_the_start_in_utc() -> None:
    late = datetime(2026, 3, 1, 7, 59, tzinfo=timezone(timedelta(hours=8)))
    assert INDICES[0].name(late) == "schedulerlog-attempts-2026.02.28"


def test_documents_of_a_day_may_be_in_the_index_of_its_month_where_a_state_has_its_day_in_its_id() -> None:
    moment = datetime(2026, 3, 9, 7, 59, tzinfo=UTC)
    assert ATTEMPTS.list_places(moment) == [
        ("schedulerlog-attempts-2026.03.09", ""), ("schedulerlog-attempts-2026.03.00", ""),
    ]  # fmt: skip
    assert NODE_STATES.list_places(moment)[1] == ("schedulerlog-node-states-2026.03.00", "@09")
    assert TRENDS.list_places(moment) == [("schedulerlog-trends-2026.03.01", "")]
    assert ATTEMPTS.join_names(moment) == "schedulerlog-attempts-2026.03.09,schedulerlog-attempts-2026.03.00"


def test_the_period_of_an_index_is_in_its_name() -> None:
    first, april = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 4, 1, tzinfo=UTC)
    assert ATTEMPTS.parse_period("schedulerlog-attempts-2024.03.00") == (first, april)
    assert ATTEMPTS.parse_period("schedulerlog-attempts-2024.03.01") == (first, datetime(2024, 3, 2, tzinfo=UTC))
    assert TRENDS.parse_period("schedulerlog-trends-2024.03.01") == (first, april)
    assert ATTEMPTS.parse_period("schedulerlog-attempts-2024.12.00") == (
        datetime(2024, 12, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    assert ATTEMPTS.parse_period("schedulerlog-attempts-9999.12.00") is None
