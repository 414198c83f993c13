"""Values that an event refuses, so that no reader has to defend itself against them."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from schemas.events import (
    EVENTS,
    MAX_PARTS,
    AlertChanged,
    AttemptConcluded,
    AttemptEvent,
    BindConcluded,
    DetailDropped,
    DevicesJudged,
    Event,
    FindingReported,
    MessageLine,
    MessagesEmitted,
    Moment,
    NodeChecked,
    NodeObserved,
    NodeRegistered,
    NodeStateChanged,
    Owner,
    PodHistoryChanged,
    PodObserved,
    PodRef,
    Request,
)
from tests.support.builders.events import (
    ATTEMPT,
    STARTED,
    a_contribution,
    a_pod_history,
    a_repetition,
    a_scheduler_observed,
    a_summary,
    a_workload_observed,
    an_attempt_counted,
    an_unchanged_attempt,
    build_devices_judged,
    build_nodes_judged,
    build_trends,
)
from tests.support.builders.node_states import a_node_state, build_lookup, build_states

MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
PLAIN_MOMENT: TypeAdapter[datetime] = TypeAdapter(datetime)
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


@given(
    st.from_regex(
        r"(1969|19[78][0-9]|20[0-9]{2}|0000|9999)-[01][0-9]-[0-3][0-9]"
        r"T[012][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{6})?Z",
        fullmatch=True,
    )
)
def test_times_in_the_form_of_events_are_read_as_pydantic_reads_them(text: str) -> None:
    """Most are read without pydantic, and those that do not exist are refused in its words."""
    try:
        expected = PLAIN_MOMENT.validate_python(text)
    except ValidationError as error:
        cause = error.errors()[0]["msg"]
        with pytest.raises(ValidationError) as refused:
            MOMENT.validate_python(text)
        assert refused.value.errors()[0]["msg"] == cause
        return
    if expected.year < 1970:
        with pytest.raises(ValidationError, match="between the years 1970 and 9999"):
            MOMENT.validate_python(text)
    else:
        moment = MOMENT.validate_python(text)
        assert (moment, moment.tzinfo) == (expected, UTC)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rows": [9]}, "9 rows where 8"),
        ({"rows": [7]}, "column verdict has 8 entries where 7"),
        ({"verdict": [0] * 7}, "8 rows where 7"),
        ({"rows": [-1]}, "never negative"),
        ({"devices": [-1]}, "never negative"),
        ({"devices": []}, "column devices has 0 entries where 1"),
        ({"revision": [-2]}, "a revision is a count, or -1 for none"),
        ({"revision": []}, "column revision has 0 entries where 1"),
        ({"revision": [2**63]}, "column of integers"),
        ({"epoch": -1}, "greater than or equal to 0"),
        ({"models": {"A100": -1}}, "greater than or equal to 0"),
        ({"verdict": [4] * 8}, "column verdict points at entry 4 of a table of 4"),
        ({"verdict": [-1] * 8}, "every row has a verdict"),
        ({"verdict": [-2] * 8}, "-1 for none"),
        ({"device": [0] * 7}, "column device has 7 entries where 8"),
        ({"device": [-1] * 8}, "device is a position, never negative"),
        ({"verdicts": "fits"}, "valid list"),
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
        build_devices_judged(**fields)


def test_rows_that_wrap_around_to_the_right_sum_are_refused() -> None:
    with pytest.raises(ValidationError, match="rows where 0 are there in all"):
        build_devices_judged(["a", "b", "c"], per_node=0, rows=[2**63 - 1, 2**63 - 1, 2])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"verdict": [-1]}, "every node has a verdict"),
        ({"verdict": [2]}, "table of 2"),
        ({"refusal": [1]}, "table of 1"),
        ({"refused_by": [1]}, "column refused_by points at entry 1"),
        ({"score": [float("nan")]}, "finite"),
        ({"refusals": [{"counts": {"CardNotHealth": 1.5}}]}, "valid integer"),
    ],
)
def test_nodes_judged_refuses_columns_that_do_not_agree(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        build_nodes_judged(**fields)


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
        a_node_state(uuid=[1] * 100_000)
    assert caught.value.error_count() == 1


def an_alert(**fields: Any) -> AlertChanged:
    common = {
        "cluster": "default",
        "rule": "Pending",
        "labels": {"pod": "trainer"},
        "state": "firing",
        "severity": "warning",
    }
    return AlertChanged.model_validate(common | {"started_at": STARTED, "changed_at": LATER, "summary": "…"} | fields)


def list_different_facts() -> list[Event]:
    attempt: dict[str, Any] = ATTEMPT
    bind = {"node": "node1", "bound": True, "bind_started_at": STARTED}
    dropped = {"device_records": 1, "judged_devices": 8, "cause": "full"}
    concluded = {"ended_at": STARTED, "requests": [], "offered_nodes": 1, "judged_nodes": 1, "judged_devices": 8}
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("uuid", "model", "mode", "index", "memory_mib", "cores_percent", "slots", "numa", "healthy")
    }
    node = {"cluster": "default", "node": "node1", "observed_at": STARTED}
    pod = PodRef(namespace="llm", name="deepseek-a", uid="6e1c")
    fields = {"reported_at": STARTED, "severity": "Warning"}
    line = MessageLine(message="…")
    return [
        build_devices_judged(part=0),
        build_devices_judged(part=1),
        build_nodes_judged(part=0),
        build_nodes_judged(part=1),
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
        build_trends(version=1),
        build_trends(version=2),
        build_trends(version=2, recorded_at=STARTED),
        an_attempt_counted(),
        an_attempt_counted(adds=a_contribution(version=2)),
        a_pod_history(),
        a_pod_history(published_until=42),
        a_repetition(version=2),
        MessagesEmitted(**attempt, **fields, reason="FilteringFailed", lines=[line]),
        MessagesEmitted(**attempt, **fields, reason="FilteringFailed", lines=[line, line]),
        MessagesEmitted(**attempt, **fields, reason="FilteringFailed", lines=[MessageLine(code="X", message="…")]),
        MessagesEmitted(**attempt, **fields, reason="BindingFailed", lines=[line]),
        NodeRegistered(**node, **columns, registered=True, scheduler="hami-scheduler"),
        NodeRegistered(**node, **columns, registered=True, scheduler="other"),
        NodeRegistered(**(node | {"observed_at": LATER}), **columns, registered=True, scheduler="other"),
        NodeObserved(**node),
        NodeObserved(**(node | {"node": "node2"})),
        an_unchanged_attempt(),
        an_unchanged_attempt(attempt_id="3e" * 16),
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
        PodObserved(cluster="default", pod=pod, observed_at=STARTED, phase="Pending"),
        PodObserved(cluster="default", pod=pod, observed_at=LATER, phase="Pending"),
        PodObserved(
            cluster="default", pod=PodRef(namespace="llm", name="deepseek-b"), observed_at=STARTED, phase="Pending"
        ),
        a_workload_observed(),
        a_workload_observed(observed_at=LATER),
        a_workload_observed(namespace="other"),
        a_workload_observed(workload=Owner(kind="PyTorchJob", name="train")),
        a_workload_observed(workload=Owner(kind="Job", name="other")),
        a_scheduler_observed(),
        a_scheduler_observed(observed_at=LATER),
        a_scheduler_observed(scheduler="other"),
        a_scheduler_observed(instance="other"),
    ]


def test_different_facts_have_different_ids() -> None:
    facts = list_different_facts()
    # Ids of attempts are derived from the cluster's name, and the labels of alerts have it.
    has_it_otherwise = (AttemptEvent, AlertChanged)
    facts += [fact.model_copy(update={"cluster": "west"}) for fact in facts if not isinstance(fact, has_it_otherwise)]
    assert {type(fact) for fact in facts} == set(EVENTS)
    same = [(a, b) for a, b in itertools.combinations(facts, 2) if (a.source, a.id) == (b.source, b.id)]
    assert same == []


def test_a_state_that_is_written_again_a_day_later_is_the_same_state() -> None:
    assert a_node_state(observed_at=LATER).id == a_node_state().id


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"uuid": ["GPU-1"]}, "column kind has 8 entries where 1 are expected"),
        ({"healthy": [True]}, "column healthy has 1 entries where 8 are expected"),
        ({"kind": [1] * 8}, "column kind points at entry 1 of a table of 1"),
        ({"kind": [-1] * 8}, "every device has a kind"),
        ({"mig": [{"device": 8}]}, "mig names a device beyond the 8 of the node"),
        ({"pair_scores": [1]}, "column pair_scores has 1 entries where 64 are expected"),
        ({"revision": -1}, "greater than or equal to 0"),
    ],
)
def test_a_state_refuses_what_no_reader_could_use(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        a_node_state(**fields)


def test_a_state_may_be_of_a_node_that_its_source_does_not_name() -> None:
    assert (a_node_state("").key, a_node_state("", epoch=0, revision=3).id) == (
        "default/",
        "default/hami-scheduler//state/0/3",
    )


def test_each_row_is_a_device_of_the_state_in_order() -> None:
    event = build_devices_judged(["node1", "node2"], per_node=2, verdict=[0, 1, 2, 3])
    rows = list(event.iterate_devices(build_lookup(build_states(event))))
    assert [(row.node, row.uuid, row.verdict) for row in rows] == [
        ("node1", "GPU-node1-0", "CardInsufficientMemory"),
        ("node1", "GPU-node1-1", "CardInsufficientCore"),
        ("node2", "GPU-node2-0", "CardTimeSlicingExhausted"),
        ("node2", "GPU-node2-1", "NumaNotFit"),
    ]
    assert rows[0][3:] == ("NVIDIA A100-SXM4-80GB", 0, 81920, 1024, 100, 10, 10, 1, 0, None, None, {})


def test_a_row_has_what_a_log_prints_of_its_device() -> None:
    event = build_devices_judged(["node1"], per_node=2, verdict=[0, 1]).model_copy(
        update={
            "printed_index": np.array([6, -1]),
            "memory_requested_mib": np.array([20480, -1]),
            "checks": [{"enough_idle": False}],
            "check": np.array([0, -1]),
        }
    )
    first, second = event.iterate_devices(build_lookup([]))
    assert (first.device_index, first.memory_requested_mib, first.cores_requested_percent) == (6, 20480, None)
    assert (second.device_index, second.memory_requested_mib) == (None, None)
    assert (first.checks, second.checks) == ({"enough_idle": False}, {})


def test_a_column_of_what_is_printed_has_an_entry_per_row_or_none() -> None:
    event = build_devices_judged(["node1"], per_node=2, verdict=[0, 1])
    with pytest.raises(ValidationError, match="column printed_index has 1 entries where 2 are expected"):
        DevicesJudged.model_validate(event.__dict__ | {"printed_index": [6]})


def test_a_row_may_name_its_device_by_its_position_in_the_state() -> None:
    event = build_devices_judged(["node1", "node2"], per_node=2, verdict=[0, 1, 2, 3], device=[3, 3, 1, 0])
    rows = event.iterate_devices(build_lookup([a_node_state("node1", 4), a_node_state("node2", 2)]))
    assert [row.uuid for row in rows] == ["GPU-node1-3", "GPU-node1-3", "GPU-node2-1", "GPU-node2-0"]


def test_rows_of_some_nodes_are_those_that_they_are_among_all() -> None:
    printed = {"printed_index": np.array([6, -1, 4, 5]), "checks": [{"fits": False}], "check": np.array([0, -1, -1, 0])}
    verdict = [0, 1, 2, 3]
    in_order = build_devices_judged(["node1", "node2"], per_node=2, verdict=verdict)
    by_position = build_devices_judged(["node1", "node2"], per_node=2, verdict=verdict, device=[3, 3, 1, 0])
    for event in (record.model_copy(update=printed) for record in (in_order, by_position)):
        states = build_lookup([a_node_state("node1", 4), a_node_state("node2", 2)])
        for node in ("node1", "node2"):
            expected = [row for row in event.iterate_devices(states) if row.node == node]
            assert list(event.iterate_devices(states, {node})) == expected


@pytest.mark.parametrize("states", [[], [a_node_state("node1", 1)], [a_node_state("node1", revision=8)]])
def test_a_row_whose_state_is_missing_or_too_short_has_its_verdict_alone(states: list[NodeStateChanged]) -> None:
    event = build_devices_judged(per_node=2, verdict=[0, 3])
    assert list(event.iterate_devices(build_lookup(states)))[1] == ("node1", "", "NumaNotFit", "", *[None] * 10, {})


@given(st.lists(st.integers(0, 2**63 - 1), max_size=6), st.integers(0, 3), st.integers(-1, 8))
def test_states_and_verdicts_that_contradict_each_other_still_give_a_row_per_verdict(
    device: list[int], size: int, revision: int
) -> None:
    event = build_devices_judged(per_node=len(device), device=device, verdict=[0] * len(device), revision=[revision])
    state = a_node_state("node1", size)
    rows = list(event.iterate_devices(build_lookup([state])))
    uuids = state.uuid if revision == state.revision else []
    assert [row.uuid for row in rows] == [uuids[index] if index < len(uuids) else "" for index in device]


def test_the_same_fact_published_twice_has_the_same_id() -> None:
    assert [fact.id for fact in list_different_facts()] == [fact.id for fact in list_different_facts()]


def test_what_is_about_one_pod_shares_a_key() -> None:
    facts = [fact for fact in list_different_facts() if getattr(fact, "pod", None) == ATTEMPT["pod"]]
    # Compacted by its key, a history has a longer one; the worker chooses its partition.
    facts = [fact for fact in facts if not isinstance(fact, PodHistoryChanged)]
    assert {fact.key for fact in facts} == {"default/llm/deepseek-a"}


def test_a_source_is_a_uri_reference_whatever_the_scheduler_is_called() -> None:
    assert build_nodes_judged(scheduler="kai scheduler/1").source == "/clusters/default/schedulers/kai%20scheduler%2F1"


@pytest.mark.parametrize(
    ("request_fields", "total", "taken"),
    [({"memory_mib": 500}, 1000, 500), ({"memory_percent": 33}, 1000, 330), ({"memory_percent": 33}, None, None),
     ({"memory_percent": 33}, 101, 33), ({}, 1000, None)],
)  # fmt: skip
def test_a_share_of_a_device_is_cut_to_whole_mebibytes(
    request_fields: dict[str, int], total: int | None, taken: int | None
) -> None:
    assert Request(container="", count=1, **request_fields).compute_memory(total) == taken
