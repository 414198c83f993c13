"""What an event refuses to be, so that no reader has to defend itself against it."""

import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.events import (
    EVENTS,
    MAX_PARTS,
    AlertChanged,
    AttemptConcluded,
    BindConcluded,
    DetailDropped,
    Event,
    FindingReported,
    MessageEmitted,
    Moment,
    NodeChecked,
    NodeObserved,
    NodeRegistered,
    NodeStateChanged,
    PodObserved,
    PodRef,
)
from tests.support.builders.events import (
    ATTEMPT,
    STARTED,
    a_repetition,
    a_summary,
    devices_judged,
    nodes_judged,
    some_trends,
)

MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
LATER = STARTED + timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901+00:00"),
        ("2026-01-02T11:04:05.5+08:00", "2026-01-02T03:04:05.500000+00:00"),
        ("2026-01-02t03:04:05.123456789z", "2026-01-02T03:04:05.123456+00:00"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:00"),
    ],
)
def test_a_moment_is_rfc_3339_text(text: str, utc: str) -> None:
    assert MOMENT.validate_python(text).isoformat() == utc


@pytest.mark.parametrize(
    "wrong",
    [
        "1763700000",
        "1763700000.5",
        1763700000,
        True,
        None,
        "",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04Z",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05+0800",
        "２０２６-01-02T03:04:05Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        datetime(2026, 1, 2),  # noqa: DTZ001 - a time without a zone is what is refused
    ],
    ids=str,
)
def test_a_moment_is_nothing_else(wrong: object) -> None:
    with pytest.raises(ValidationError):
        MOMENT.validate_python(wrong)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rows": [9]}, "9 rows where 8"),
        ({"rows": [7]}, "column uuid has 8 entries where 7"),
        ({"verdict": [0] * 7}, "entries where 7"),
        (
            {name: [0] * 7 for name in ("verdict", "memory_used_mib", "cores_used_percent", "slots_used")},
            "column verdict has 7 entries where 8",
        ),
        ({"rows": [-1]}, "never negative"),
        ({"devices": [-1]}, "never negative"),
        ({"node_index": [-1]}, "never negative"),
        ({"node_index": []}, "column node_index has 0 entries where 1"),
        ({"verdict": [4] * 8}, "column verdict points at entry 4 of a table of 4"),
        ({"verdict": [-1] * 8}, "every row has a verdict"),
        ({"kind": [-2] * 8}, "-1 for none"),
        ({"kind": [-1] * 8}, "every row has a kind"),
        ({"kind": [2] * 8}, "column kind points at entry 2 of a table of 2"),
        ({"numa": [0] * 7}, "column numa has 7 entries where 8"),
        ({"uuid": "x" * 8}, "valid list"),
        ({"part": -1}, "greater than or equal to 0"),
        ({"part": True}, "valid integer"),
        ({"attempt_id": "a/nodes"}, "pattern"),
        ({"attempt_id": ""}, "pattern"),
        ({"pod": {"namespace": "", "name": "p"}}, "at least 1 character"),
        ({"pod": {"namespace": "n", "name": "\ud800"}}, "unicode"),
    ],
)
def test_devices_judged_refuses_columns_that_do_not_agree(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        devices_judged(**fields)


def test_rows_that_wrap_around_to_the_right_sum_are_refused() -> None:
    with pytest.raises(ValidationError, match="rows where 0 are there in all"):
        devices_judged(["a", "b", "c"], each=0, rows=[2**63 - 1, 2**63 - 1, 2])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"verdict": [-1]}, "every node has a verdict"),
        ({"verdict": [2]}, "table of 2"),
        ({"refusal": [1]}, "table of 1"),
        ({"refused_by": [1]}, "column refused_by points at entry 1"),
        ({"score": [float("nan")]}, "finite"),
        ({"node_index": [-1]}, "never negative"),
        ({"refusals": [{"counts": {"CardNotHealth": 1.5}}]}, "valid integer"),
    ],
)
def test_nodes_judged_refuses_columns_that_do_not_agree(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        nodes_judged(**fields)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"part": 1}, "part 1 of 1"),
        ({"parts": 0}, "greater than or equal to 1"),
        ({"parts": MAX_PARTS + 1}, "less than or equal"),
        ({"parts": "2"}, "valid integer"),
        ({"verdict": [-1, 0]}, "every node has a verdict"),
        ({"refused_by": [0, 7]}, "refused_by points at entry 7"),
        ({"complete": "no"}, "valid boolean"),
        ({"status": "running"}, "succeeded"),
    ],
)
def test_a_summary_refuses_what_no_reader_could_use(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        a_summary(**fields)


def test_events_can_not_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        a_summary().chosen = "node1"  # type: ignore[misc]


def test_a_wrong_list_of_thousands_is_one_error() -> None:
    with pytest.raises(ValidationError) as caught:
        devices_judged(uuid=[1] * 100_000)
    assert caught.value.error_count() == 1


def an_alert(**fields: Any) -> AlertChanged:
    common = {"rule": "Pending", "labels": {"pod": "trainer"}, "state": "firing", "severity": "warning"}
    return AlertChanged.model_validate(common | {"started_at": STARTED, "changed_at": LATER, "summary": "…"} | fields)


def a_node_state(**fields: Any) -> NodeStateChanged:
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "kinds", "uuid", "kind", "index", "numa", "healthy", "cordoned",
            "memory_used_mib", "cores_used_percent", "slots_used",
        )
    }  # fmt: skip
    common = {"node": "node1", "observed_at": STARTED, "scheduler": "hami-scheduler", "epoch": 1, "revision": 1}
    return NodeStateChanged.model_validate(common | columns | fields)


def different_facts() -> list[Event]:
    attempt: dict[str, Any] = ATTEMPT
    bind = {"node": "node1", "bound": True, "bind_started_at": STARTED}
    dropped = {"device_records": 1, "judged_devices": 8, "cause": "full"}
    concluded = {"ended_at": STARTED, "requests": [], "offered_nodes": 1, "judged_nodes": 1, "judged_devices": 8}
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("uuid", "model", "mode", "index", "memory_mib", "cores_percent", "slots", "numa", "healthy")
    }
    node = {"node": "node1", "observed_at": STARTED}
    pod = PodRef(namespace="llm", name="deepseek-a", uid="6e1c")
    fields = {"reported_at": STARTED, "severity": "Warning", "message": "…"}
    return [
        devices_judged(part=0),
        devices_judged(part=1),
        nodes_judged(part=0),
        nodes_judged(part=1),
        AttemptConcluded(**attempt, **concluded, device_records=0, node_records=1),
        BindConcluded(**attempt, **bind, ended_at=STARTED),
        BindConcluded(**attempt, **bind, ended_at=LATER),
        DetailDropped(**attempt, **dropped, dropped_at=STARTED),
        DetailDropped(**attempt, **dropped, dropped_at=LATER),
        FindingReported(**attempt, finding="MemoryChanged", found_at=STARTED, node="node1"),
        FindingReported(**attempt, finding="MemoryChanged", found_at=LATER, node="node1"),
        FindingReported(**attempt, finding="MemoryChanged", found_at=STARTED, node="node1", device="GPU-1"),
        a_summary(version=1),
        a_summary(version=2),
        a_summary(version=2, part=1, parts=2),
        a_repetition(version=1),
        some_trends(version=1),
        some_trends(version=2),
        a_repetition(version=2),
        MessageEmitted(**attempt, **fields, reason="FilteringFailed"),
        MessageEmitted(**attempt, **fields, reason="FilteringFailed", code="NumaNotFit"),
        MessageEmitted(**attempt, **fields, reason="BindingFailed"),
        NodeRegistered(**node, **columns, registered=True, scheduler="hami-scheduler"),
        NodeRegistered(**node, **columns, registered=True, scheduler="other"),
        NodeRegistered(**(node | {"observed_at": LATER}), **columns, registered=True, scheduler="other"),
        NodeObserved(**node),
        NodeObserved(**(node | {"node": "node2"})),
        an_alert(),
        an_alert(state="resolved"),
        an_alert(started_at=LATER),
        an_alert(labels={"pod": "other"}),
        an_alert(rule="Other"),
        NodeChecked(**node, problems=[], scheduler="hami-scheduler"),
        NodeChecked(**(node | {"observed_at": LATER}), problems=[], scheduler="hami-scheduler"),
        a_node_state(),
        a_node_state(revision=2),
        a_node_state(epoch=2),
        a_node_state(node="node2"),
        a_node_state(scheduler="other"),
        PodObserved(pod=pod, observed_at=STARTED, phase="Pending"),
        PodObserved(pod=pod, observed_at=LATER, phase="Pending"),
        PodObserved(pod=PodRef(namespace="llm", name="deepseek-b"), observed_at=STARTED, phase="Pending"),
    ]


def test_different_facts_have_different_ids() -> None:
    facts = different_facts()
    assert {type(fact) for fact in facts} == set(EVENTS)
    same = [(a, b) for a, b in itertools.combinations(facts, 2) if (a.source, a.id) == (b.source, b.id)]
    assert same == []


def test_a_state_that_is_written_again_a_day_later_is_the_same_state() -> None:
    assert a_node_state(observed_at=LATER).id == a_node_state().id


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"uuid": ["GPU-1"]}, "column kind has 0 entries where 1 are expected"),
        ({"mig": [{"device": 0}]}, "mig names a device beyond the 0 of the node"),
        ({"pair_scores": [1]}, "column pair_scores has 1 entries where 0 are expected"),
    ],
)
def test_a_state_refuses_what_no_reader_could_use(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        a_node_state(**fields)


def test_the_same_fact_published_twice_has_the_same_id() -> None:
    assert [fact.id for fact in different_facts()] == [fact.id for fact in different_facts()]


def test_what_is_about_one_pod_shares_a_key() -> None:
    about = [fact for fact in different_facts() if getattr(fact, "pod", None) == ATTEMPT["pod"]]
    assert {fact.key for fact in about} == {"llm/deepseek-a"}


def test_a_source_is_a_uri_reference_whatever_the_scheduler_is_called() -> None:
    assert nodes_judged(scheduler="kai scheduler/1").source == "/schedulers/kai%20scheduler%2F1"
