"""Golden records: whatever was ever written can still be read, each checked by what its reader would look at."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from engine.summaries.text import write_refusal
from schemas.codec.records import decode, encode
from schemas.codec.trace_context import trace_of, with_trace
from schemas.events import (
    EVENTS,
    AttemptConcluded,
    AttemptCounted,
    AttemptRepeated,
    AttemptSummarized,
    BindConcluded,
    DetailDropped,
    DeviceRow,
    DevicesJudged,
    Event,
    FindingReported,
    MessagesEmitted,
    NodeChecked,
    NodeObserved,
    NodeRegistered,
    NodesJudged,
    NodeStateChanged,
    PodHistoryChanged,
    PodObserved,
    SchedulerObserved,
    TrendsCounted,
    WorkloadObserved,
)
from schemas.events.schedulers import compute_settings_digest
from schemas.generate import ROOT

GOLDEN = Path(__file__).parent / "golden"
RETIRED = {"ce_dataschema"}
"""Headers that only older records have (decision 0055)."""
RECORDS = sorted(path for path in GOLDEN.glob("*/*.json") if not path.name.endswith(".headers.json"))
IDS = [f"{path.parent.name.removeprefix('io.schedulerlog.')}-{path.stem}" for path in RECORDS]

E = TypeVar("E", bound=Event)

every_record = pytest.mark.parametrize("path", RECORDS, ids=IDS)


def read_headers(path: Path) -> dict[str, str]:
    headers: dict[str, str] = json.loads(path.with_suffix(".headers.json").read_text(encoding="utf-8"))
    return headers


def read(path: Path) -> Event:
    headers = [(name, value.encode()) for name, value in read_headers(path).items() if name != "key"]
    event = decode(path.read_bytes(), headers)
    assert isinstance(event, Event), str(event)
    return event


def read_golden(kind: type[E], number: str) -> E:
    event = read(GOLDEN / kind.TYPE / f"{number}.json")
    assert isinstance(event, kind)
    return event


@every_record
def test_a_record_once_written_still_says_the_same_key_and_headers(path: Path) -> None:
    values = rewrite(path)
    was = {name: value for name, value in read_headers(path).items() if name not in RETIRED}
    assert {name: values[name] for name in was} == was


@every_record
def test_a_record_names_what_it_is_about(path: Path) -> None:
    """Also one that was written when records did not."""
    values, says = rewrite(path), json.loads(path.read_bytes())
    if "pod" in says and "history" not in path.parent.name:
        assert values["ce_subject"] == f"{says['pod']['namespace']}/{says['pod']['name']}"
    elif "node" in says:
        assert values["ce_subject"] == says["node"]
    else:
        assert values["key"].removeprefix(f"{says['cluster']}/") == values["ce_subject"] != ""


def rewrite(path: Path) -> dict[str, str]:
    headers = [(name, value.encode()) for name, value in read_headers(path).items()]
    record = with_trace(encode(read(path)), trace_of(headers))
    return {"key": record.key.decode()} | {name: value.decode() for name, value in record.headers}


@cache
def build_validator(name: str) -> Draft202012Validator:
    """Build the validator of an event type's published schema, which takes ten times as long to check as a record."""
    schema = json.loads((ROOT / f"schemas/generated/{name}.schema.json").read_text(encoding="utf-8"))
    # By the type of a record a consumer finds its schema (docs/events.md).
    assert schema["$id"] == f"urn:schedulerlog:{name}"
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


@every_record
def test_a_record_once_written_is_valid_by_the_published_schema(path: Path) -> None:
    errors = build_validator(path.parent.name).iter_errors(json.loads(path.read_bytes()))
    assert [error.message for error in errors] == []


@every_record
def test_a_record_written_again_by_this_version_is_the_same_event(path: Path) -> None:
    event = read(path)
    record = encode(event)
    again = decode(record.value, record.headers)
    assert isinstance(again, Event), str(again)
    assert (again.id, encode(again)) == (event.id, record)
    assert set(json.loads(record.value)) == set(type(event).model_fields)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_a_complete_record_decodes_and_encodes_to_the_same_json(kind: type[Event]) -> None:
    """Fields that were added since stand beside what the record says."""
    path = GOLDEN / kind.TYPE / "001.json"
    was, says = json.loads(path.read_bytes()), json.loads(encode(read(path)).value)
    assert select_fields(was, says) == was


def select_fields(was: Any, says: Any) -> Any:
    """Select from ``says`` the fields that ``was`` has, at any depth."""
    if isinstance(was, dict):
        return {name: select_fields(value, says.get(name)) for name, value in was.items()}
    if isinstance(was, list) and len(was) == len(says):
        return [select_fields(*pair) for pair in zip(was, says, strict=True)]
    return says


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_type_has_a_complete_record_and_one_from_a_later_version(kind: type[Event]) -> None:
    values = [json.loads(path.read_bytes()) for path in RECORDS if path.parent.name == kind.TYPE]
    assert len(values) >= 2
    assert any(set(value) == set(kind.model_fields) for value in values)
    assert any(set(value) - set(kind.model_fields) for value in values)


def test_every_golden_record_is_of_a_known_type() -> None:
    assert {path.parent.name for path in RECORDS} == {kind.TYPE for kind in EVENTS}


def list_rows(event: DevicesJudged) -> list[DeviceRow]:
    """List the rows with what the golden states say about their devices."""
    states = {
        (state.scheduler, state.epoch, state.node, state.revision): state
        for state in map(read, RECORDS)
        if isinstance(state, NodeStateChanged)
    }
    return list(
        event.iterate_devices(lambda node, revision: states.get((event.scheduler, event.epoch, node, revision)))
    )


def count_verdicts(event: DevicesJudged, node: str) -> dict[str, int]:
    verdicts = [row.verdict for row in list_rows(event) if row.node == node]
    return {verdict: verdicts.count(verdict) for verdict in verdicts}


def test_devices_judged_says_why_each_device_was_refused() -> None:
    event = read_golden(DevicesJudged, "001")
    node1 = {
        "NumaNotFit": 2,
        "CardInsufficientMemory": 3,
        "CardInsufficientCore": 2,
        "ExclusiveDeviceAllocateConflict": 1,
    }
    assert count_verdicts(event, "node1") == node1
    node2 = {"CardUuidMismatch": 4, "CardInsufficientMemory": 3, "ExclusiveDeviceAllocateConflict": 1}
    assert count_verdicts(event, "node2") == node2
    assert event.devices.tolist() == [8, 8]
    assert list_rows(event)[2] == DeviceRow(
        node="node1",
        uuid="GPU-4972a185-507a-4e0b-82b4-ef5af46fa229",
        verdict="CardInsufficientMemory",
        model="NVIDIA-NVIDIA L40S",
        numa=0,
        memory_total_mib=45912,
        memory_used_mib=39645,
        cores_total_percent=100,
        cores_used_percent=60,
        slots_total=10,
        slots_used=3,
        device_index=2,
        memory_requested_mib=20480,
        checks={"enough_idle": False, "enough_resources": False},
    )
    assert (event.request.count, event.request.memory_mib, event.request.cores_percent) == (2, 20480, 20)


def test_devices_judged_says_which_devices_were_picked() -> None:
    event = read_golden(DevicesJudged, "002")
    assert count_verdicts(event, "node3") == {"not reached": 6, "picked": 2}
    picked = [row.uuid for row in list_rows(event) if row.verdict == "picked"]
    assert picked == ["GPU-6b0c9f64-2f0e-4f3f-9a52-7d6b3a1c2e06", "GPU-7b0c9f64-2f0e-4f3f-9a52-7d6b3a1c2e07"]
    assert (event.container, event.request.container) == (2, "ubuntu-container1")


def test_a_mig_device_may_have_a_row_for_each_time_it_was_looked_at() -> None:
    event = read_golden(DevicesJudged, "003")
    assert [(row.node, row.uuid, row.verdict, row.model) for row in list_rows(event)] == [
        ("mig-1", "GPU-a", "picked", "NVIDIA A100-SXM4-40GB"),
        ("mig-1", "GPU-a", "picked", "NVIDIA A100-SXM4-40GB"),
        ("mig-1", "GPU-b", "CardFromTheFuture", ""),
    ]
    assert (event.devices.tolist(), event.rows.tolist(), event.device.tolist()) == ([2, 0], [3, 0], [0, 0, 1])
    last = list_rows(event)[-1]
    assert (last.memory_total_mib, last.memory_used_mib) == (40960, 36864)
    assert (last.numa, last.cores_total_percent, last.cores_used_percent, last.slots_total, last.slots_used) == (
        None,
    ) * 5
    assert event.started_at.isoformat() == "2026-05-01T00:00:00+00:00"
    assert (event.request.memory_percent, event.request.cores_percent, event.pod.uid) == (None, 0, "")


def test_devices_without_a_node_have_a_state_of_a_node_without_a_name() -> None:
    event = read_golden(DevicesJudged, "005")
    (row,) = list_rows(event)
    assert (row.node, row.uuid, row.memory_used_mib) == ("", "GPU-62b7408e-edb2-41d1-bc91-f46165c61130", 41645)
    assert (event.partial, event.models, row.cores_used_percent) == (True, {}, None)


def test_verdicts_without_a_state_are_still_verdicts() -> None:
    rows = list_rows(read_golden(DevicesJudged, "006"))
    assert [(row.node, row.verdict) for row in rows] == [
        ("node1", "CardInsufficientCore"),
        ("node1", "CardTimeSlicingExhausted"),
        ("node2", "not reached"),
    ]
    assert {value for row in rows for value in (row.uuid, row.model)} == {""}
    assert {value for row in rows for value in row[4:-1]} == {None}


def index_nodes(event: NodesJudged | AttemptSummarized) -> dict[str, tuple[str, str]]:
    values = [write_refusal(event.refusals[code]) if code >= 0 else "" for code in event.refusal.tolist()]
    words = [event.verdicts[code] for code in event.verdict.tolist()]
    return dict(zip(event.nodes, zip(words, values, strict=True), strict=True))


FIVE_NODES = {
    "node1": (
        "refused",
        "1/8 ExclusiveDeviceAllocateConflict, 2/8 CardInsufficientCore, 2/8 NumaNotFit, 3/8 CardInsufficientMemory",
    ),
    "node2": ("refused", "1/8 ExclusiveDeviceAllocateConflict, 3/8 CardInsufficientMemory, 4/8 CardUuidMismatch"),
    "node3": ("fits", ""),
    "node4": ("fits", ""),
    "node5": ("picked", ""),
}


def test_nodes_judged_says_what_became_of_each_node() -> None:
    event = read_golden(NodesJudged, "001")
    assert index_nodes(event) == FIVE_NODES
    assert [f"{score:.2f}" for score in event.score.tolist()] == ["0.00", "0.00", "0.65", "0.26", "0.85"]
    assert [event.containers[code] for code in event.refused_by.tolist() if code >= 0] == ["deepseek", "deepseek"]


def test_nodes_judged_says_bare_reasons_with_their_cause() -> None:
    assert index_nodes(read_golden(NodesJudged, "002")) == {
        "cpu-1": ("unregistered", "node unregistered"),
        "gpu-broken": ("unregistered", "node unregistered: hami.io/node-nvidia-register, byte 17: not JSON"),
        "gpu-small": ("refused", "NodeInsufficientDevice"),
        "gpu-full": ("refused", "8/8 CardInsufficientMemory"),
        "gpu-spare": ("not reached", ""),
    }


def test_attempt_concluded_says_what_was_asked_and_what_must_have_come_before_it() -> None:
    event = read_golden(AttemptConcluded, "001")
    requests = [
        (request.container, request.count, request.memory_percent, request.memory_mib) for request in event.requests
    ]
    ubuntu = [
        ("ubuntu-container", 2, 50, None),
        ("ubuntu-container0", 0, None, None),
        ("ubuntu-container1", 2, None, 2000),
    ]
    assert requests == ubuntu
    assert (event.chosen, event.device_records, event.node_records, event.judged_devices) == ("node3", 2, 1, 152)


def test_attempt_concluded_says_what_each_container_took_on_the_chosen_node() -> None:
    event = read_golden(AttemptConcluded, "001")
    assert [(device.container, device.uuid[:6], device.memory_mib) for device in event.picked] == [
        (0, "GPU-4b", 16384),
        (0, "GPU-5b", 16384),
        (2, "GPU-6b", 2000),
        (2, "GPU-7b", 2000),
    ]
    # The picks of container 2 are those of its device record.
    rows = list_rows(read_golden(DevicesJudged, "002"))
    assert [row.uuid for row in rows if row.verdict == "picked"] == [device.uuid for device in event.picked[2:]]


def test_attempt_concluded_says_an_error_instead_of_a_choice() -> None:
    event = read_golden(AttemptConcluded, "002")
    assert event.chosen is None
    assert event.error.startswith("calcScore failed")


def test_attempt_concluded_counts_nodes_where_the_scheduler_names_none() -> None:
    event = read_golden(AttemptConcluded, "003")
    assert event.refused_nodes == {"Insufficient nvidia.com/gpu": 3, "node(s) had untolerated taint(s)": 2}
    assert (event.offered_nodes, event.judged_nodes, event.nominated) == (5, 0, "gpu-1")
    assert event.scheduler_message.startswith("0/5 nodes are available: ")


def test_a_finding_says_what_proves_it() -> None:
    event = read_golden(FindingReported, "001")
    numbers = event.numbers
    free = numbers["memory_total_mib"] - numbers["memory_allocated_mib"]
    assert free == numbers["memory_available_mib"] < numbers["memory_requested_mib"]
    assert numbers["memory_requested_mib"] <= free + numbers["memory_releasing_mib"]
    assert read_golden(FindingReported, "002").device == ""


def test_a_finding_names_the_pod_of_each_line() -> None:
    shared = read_golden(FindingReported, "003")
    assert shared.evidence_pods == [line.partition(" ")[0] for line in shared.evidence]
    assert read_golden(FindingReported, "001").evidence_pods == []


def test_bind_concluded_says_where_it_was_bound_and_how_long_that_took() -> None:
    event = read_golden(BindConcluded, "001")
    assert (event.node, event.bound, event.error) == ("node3", True, "")
    assert (event.ended_at - event.bind_started_at).total_seconds() == 0.601001


def test_bind_concluded_says_why_it_was_not_bound() -> None:
    event = read_golden(BindConcluded, "002")
    assert not event.bound
    assert event.error == "node node5 has been locked within 5m0s: node lock contention"


def test_bind_concluded_says_who_held_the_lock() -> None:
    event = read_golden(BindConcluded, "003")
    assert event.lock_holder is not None
    assert (event.lock_holder.pod, str(event.lock_holder.locked_at)) == ("llm/qwen-0", "2026-04-22 02:15:41+00:00")
    assert read_golden(BindConcluded, "001").lock_holder is None


def test_two_drops_of_one_attempt_are_two_facts() -> None:
    first, second = read_golden(DetailDropped, "001"), read_golden(DetailDropped, "002")
    assert first.id != second.id
    assert (first.device_records, first.judged_devices) == (62, 40000)


def test_attempt_summarized_adds_up() -> None:
    event = read_golden(AttemptSummarized, "006")
    assert event.balance is not None
    assert sum(event.balance.nodes.values()) == event.balance.judged_nodes == len(event.nodes)
    assert sum(sum(counts.values()) for counts in event.balance.devices) == event.balance.judged_devices
    assert [device.uuid for device in event.picked] == event.picked_devices


def test_trends_count_attempts_pods_nodes_and_devices() -> None:
    event = read_golden(TrendsCounted, "001")
    columns = (event.dimension, event.attempts, event.pods, event.nodes, event.devices)
    assert [column[0] for column in columns] == ["all", 2, 1, 8, 64]
    assert event.recorded_at < event.started_at
    assert read_golden(TrendsCounted, "002").id != event.id


def test_an_attempt_that_counts_again_says_what_no_longer_counts() -> None:
    event, before = read_golden(AttemptCounted, "001"), read_golden(AttemptCounted, "002")
    assert (event.adds.status, before.adds.status, before.replaces) == ("succeeded", "pending", None)
    assert event.replaces is not None
    assert event.replaces.version == before.adds.version < event.adds.version
    assert dict(zip(event.adds.value, event.adds.nodes.tolist(), strict=True))["CardInsufficientMemory"] == 6


def test_a_history_says_where_the_summary_lies_that_an_attempt_repeats() -> None:
    event = read_golden(PodHistoryChanged, "001")
    latest, before = event.attempts
    assert latest.whole == before.whole
    assert (latest.whole.attempt_id, latest.whole.offsets) == (before.attempt_id, [4711, 4712])
    assert len(read_golden(PodHistoryChanged, "002").attempts) == 1


def test_a_history_names_every_report_of_an_attempt() -> None:
    latest, before = read_golden(PodHistoryChanged, "001").attempts
    assert [report.source for report in before.reports] == ["scheduler", "kube-events"]
    assert [report.attempt_id for report in latest.reports] == [latest.attempt_id]
    assert before.version > max(report.version for report in before.reports)


def test_a_repetition_names_the_attempt_that_has_the_rest_and_the_first_of_its_episode() -> None:
    event = read_golden(AttemptRepeated, "001")
    assert event.repeats == event.episode != event.attempt_id
    assert event.repeats_started_at == event.episode_started_at < event.started_at
    assert (event.offered_nodes, event.reasons) == (8, ["CardInsufficientMemory"])
    assert read_golden(AttemptRepeated, "002").id != event.id


def test_a_repetition_says_where_its_pod_comes_from_and_how_often_it_was_tried() -> None:
    event = read_golden(AttemptRepeated, "003")
    assert event.description is not None
    assert (event.description.workload, event.description.queue, event.attempts) == ("Job/train", "research", 3)
    assert event.first_judged_at == read_golden(PodHistoryChanged, "003").latest.first_judged_at
    assert [attempt.attempts for attempt in read_golden(PodHistoryChanged, "003").attempts] == [2, 1]
    assert read_golden(PodHistoryChanged, "003").description == event.description
    assert (read_golden(AttemptSummarized, "009").attempts, read_golden(AttemptSummarized, "001").attempts) == (4, 0)


def test_a_repetition_says_why_its_pod_waits() -> None:
    wait = read_golden(AttemptRepeated, "004").wait
    assert wait is not None
    assert (wait.code, wait.devices, wait.missing_devices) == ("CardInsufficientMemory", 2, 1)
    assert (wait.nearest_nodes, wait.asked and wait.asked.memory_mib) == (["node3", "node5"], 40_000)
    assert read_golden(AttemptSummarized, "010").wait == wait
    assert read_golden(AttemptRepeated, "003").wait is None


def test_attempt_summarized_says_the_whole_attempt() -> None:
    event = read_golden(AttemptSummarized, "001")
    assert index_nodes(event) == FIVE_NODES
    assert event.bind is not None
    assert (event.status, event.chosen, event.bind.node, event.bind.bound) == ("failed", "node5", "node5", False)
    assert (event.complete, event.fit_nodes, event.offered_nodes) == (True, 3, 5)


def test_attempt_summarized_says_which_part_it_is() -> None:
    event = read_golden(AttemptSummarized, "002")
    assert (event.part, event.parts, event.offered_nodes, len(event.nodes)) == (1, 3, 5000, 2)
    assert index_nodes(event)["gpu-1700.example"] == ("refused", "8/8 ExclusiveDeviceAllocateConflict")
    assert [(request.container, request.init) for request in event.requests] == [("init-data", True), ("worker", False)]


def test_attempt_summarized_says_when_something_is_missing() -> None:
    event = read_golden(AttemptSummarized, "003")
    assert (event.complete, event.missing, event.ended_at, event.parts) == (False, "its conclusion", None, 1)
    assert event.score.tolist()[1] == pytest.approx(7.4607077, abs=5e-7)


def test_attempt_summarized_keeps_the_words_of_the_scheduler_it_was_read_from() -> None:
    event = read_golden(AttemptSummarized, "004")
    assert sum(event.refused_nodes.values()) == event.offered_nodes
    assert event.scheduler_message.endswith("4 Preemption is not helpful for scheduling.")


def test_attempt_summarized_says_what_changed() -> None:
    event = read_golden(AttemptSummarized, "007")
    assert event.changes == ["node3: 8/8 CardInsufficientMemory became fit"]
    assert read_golden(AttemptSummarized, "006").changes == [], "a record of before the field"


def test_messages_say_their_lines() -> None:
    failed, fitted = read_golden(MessagesEmitted, "001"), read_golden(MessagesEmitted, "002")
    assert (failed.severity, failed.reason) == ("Warning", "FilteringFailed")
    assert [(line.code, line.message) for line in failed.lines] == [
        ("CardInsufficientMemory", "3 nodes CardInsufficientMemory(node1,node3,node4)"),
        ("", "no available node, 8 nodes do not meet"),
    ]
    assert (fitted.severity, fitted.lines[0].code) == ("Normal", "")
    assert (failed.workload, fitted.workload) == ("Job/train", "")


def test_node_registered_says_what_a_node_offers() -> None:
    event = read_golden(NodeRegistered, "001")
    assert list(zip(event.uuid, event.mode, event.healthy, event.numa.tolist(), strict=True)) == [
        ("GPU-f4c45e36-2860-4050-99bd-17a437c3e53c", "hami-core", True, 0),
        ("GPU-62b7408e-edb2-41d1-bc91-f46165c61130", "mig", False, 1),
    ]
    assert event.memory_mib.tolist() == [45912, 45912]


def test_node_registered_says_why_a_node_offers_nothing() -> None:
    event = read_golden(NodeRegistered, "002")
    assert (event.registered, event.uuid) == (False, [])
    assert event.cause == "hami.io/node-nvidia-register, byte 17: not JSON"


def test_node_checked_says_what_is_wrong_and_once_more_when_nothing_is() -> None:
    (problem,) = read_golden(NodeChecked, "001").problems
    assert (problem.code, problem.vendor) == ("HandshakeTooOld", "NVIDIA")
    assert problem.handshake_at is None
    assert read_golden(NodeChecked, "002").problems == []
    (problem,) = read_golden(NodeChecked, "003").problems
    assert str(problem.handshake_at) == "2026-04-22 13:40:58+00:00"
    assert (problem.is_asked, problem.allocatable) == (False, 10)


def test_a_node_state_says_what_each_device_has_in_use() -> None:
    event = read_golden(NodeStateChanged, "001")
    assert (event.epoch, event.revision) == (1776865200000000, 17)
    assert [event.kinds[kind].mode for kind in event.kind.tolist()] == ["hami-core", "mig"]
    assert list(zip(event.memory_used_mib.tolist(), event.cordoned, strict=True)) == [(22956, False), (4864, True)]
    assert [(mig_use.device, mig_use.spans[0].start) for mig_use in event.mig] == [(1, 1)]
    assert event.pair_scores.reshape(2, 2).tolist() == [[0, 50], [50, 0]]
    unreported, empty = read_golden(NodeStateChanged, "002"), read_golden(NodeStateChanged, "003")
    assert (unreported.slots_used.tolist(), unreported.kinds[0].slots) == ([-1, -1], None)
    assert empty.uuid == []


def test_a_node_state_says_why_its_scheduler_leaves_the_node_to_another_one() -> None:
    event = read_golden(NodeStateChanged, "012")
    assert (event.uuid, event.withheld_cause) == ([], "pods of hami-of-others hold devices there")
    assert read_golden(NodeStateChanged, "003").withheld_cause == ""


def test_node_observed_says_what_the_cluster_says() -> None:
    assert read_golden(NodeObserved, "001").capacity["memory"] == "32512128Ki"
    assert read_golden(NodeObserved, "002").conditions[0].last_transition_at is None
    assert [read_golden(NodeObserved, number).unschedulable for number in ("001", "003")] == [False, True]


def test_node_registered_names_its_cordoned_devices() -> None:
    cordoned = ["GPU-f4c45e36-2860-4050-99bd-17a437c3e53c"]
    assert [read_golden(NodeRegistered, number).cordoned for number in ("001", "003")] == [[], cordoned]


def test_pod_observed_says_what_the_cluster_says() -> None:
    event = read_golden(PodObserved, "001")
    assert {condition.type: condition.status for condition in event.conditions} == {
        "PodScheduled": "True",
        "ContainersReady": "True",
    }
    assert read_golden(PodObserved, "002").node == ""
    assert [read_golden(PodObserved, number).deleted for number in ("001", "002", "003")] == [False, False, True]


def test_pod_observed_says_which_devices_it_holds_and_what_keeps_it_from_running() -> None:
    event = read_golden(PodObserved, "004")
    assert [(held.uuid[:6], held.memory_mib) for held in event.allocations] == [("GPU-2f", 20480), ("GPU-93", None)]
    assert (event.bind_phase, [problem.reported_by for problem in event.problems]) == ("allocating", ["kubelet"])
    assert event.description is not None
    assert event.description.workload == "Deployment/deepseek"
    assert read_golden(PodObserved, "002").description is None


def test_workload_observed_says_why_no_pod_was_made() -> None:
    event = read_golden(WorkloadObserved, "001")
    assert (str(event.workload), event.problem.reason) == ("Job/llama-70b", "FailedCreate")
    assert "exceeded quota: gpu" in event.problem.message
    assert read_golden(WorkloadObserved, "002").cluster == "east"


def test_workload_observed_says_what_holds_a_job_that_has_no_pods() -> None:
    event = read_golden(WorkloadObserved, "003")
    assert event.wait is not None
    assert (event.wait.code, event.wait.devices, event.queue, event.pods) == ("KueueWaitsForQuota", 8, "night", 2)
    assert [read_golden(WorkloadObserved, number).wait for number in ("001", "002")] == [None, None]


def test_pod_observed_says_by_which_pod_a_refused_one_was_replaced() -> None:
    names = [read_golden(PodObserved, number).replaced_by for number in ("004", "005")]
    assert names == ["", "deepseek-5996b8569d-x2k4p"]


def test_scheduler_observed_has_the_digest_that_b2sum_computes() -> None:
    event = read_golden(SchedulerObserved, "001")
    values = b'["HAMi", "v2.9.0", [["device-scheduler-policy", "spread"], ["node-scheduler-policy", "binpack"]]]'
    by_hand = subprocess.run(["b2sum", "-l", "64"], input=values, capture_output=True, check=True).stdout.split()[0]
    digest = compute_settings_digest(event.implementation, event.version, event.settings)
    assert event.settings_digest == digest == by_hand.decode()
    assert read_golden(AttemptConcluded, "001").settings_digest == digest
    assert read_golden(SchedulerObserved, "002").settings == {}


def test_terms_of_a_score_add_up_to_it() -> None:
    for event in (read_golden(NodesJudged, "001"), read_golden(AttemptSummarized, "001")):
        assert list(event.score_terms) == ["slots", "cores", "memory"]
        assert sum(event.score_terms.values()) == pytest.approx(event.score)


def test_a_summary_names_everybody_who_reported_the_attempt() -> None:
    event = read_golden(AttemptSummarized, "001")
    assert [(report.source, report.attempt_id == event.attempt_id) for report in event.reports] == [
        ("scheduler", True),
        ("kube-events", False),
    ]
    assert event.description is not None
    assert event.description.workload == "Deployment/deepseek"


def test_golden_values_are_json_objects_of_one_field_a_line() -> None:
    for path in RECORDS:
        value: dict[str, Any] = json.loads(path.read_bytes())
        assert len(path.read_text(encoding="utf-8").splitlines()) == len(value) + 2, path
