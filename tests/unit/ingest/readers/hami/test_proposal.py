"""The lines of the proposal that the log form comes from: each is read, with the values that stand in it."""

from pathlib import Path

import pytest

from engine.hami.reason_codes import ReasonCode
from ingest.readers.hami.reader import HamiLog
from schemas.events import DeviceRow
from tests.support.builders.hami_lines import (
    a_line,
    list_devices,
    read,
    summarize_attempts,
    write_failure,
    write_request,
    write_start,
    write_unfit,
)

PROPOSAL = (Path(__file__).parent / "cases" / "scheduler-event-proposal.log").read_bytes().splitlines()

MEMORY, CORE = "CardInsufficientMemory", "CardInsufficientCore"
TYPE, NUMA, CONFLICT = "CardTypeMismatch", "NumaNotFit", "ExclusiveDeviceAllocateConflict"

# Node, device, reason, the number of the device, and what was requested of it: memory (MiB) and cores (percent).
PRINTED = [
    ("node1", "#0", CONFLICT, 0, None, None),
    ("node1", "GPU-05ba43a8-1eb5-4645-8bdd-7fab4276ed87", CORE, 7, None, 20),
    ("node1", "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448", TYPE, None, None, None),
    ("node1", "GPU-41ee1864-ebdc-4846-a304-f49ca3105f9d", CORE, 3, None, 20),
    ("node1", "GPU-4972a185-507a-4e0b-82b4-ef5af46fa229", MEMORY, 0, 20480, None),
    ("node1", "GPU-9e83b1fc-a3a6-4b7b-920a-66c344f0955e", MEMORY, 0, 20480, None),
    ("node1", "GPU-cc244283-5652-4c35-81b0-0f54d75c0a56", NUMA, None, None, None),
    ("node2", "#0", CONFLICT, 0, None, None),
    ("node2", "#6", "CardUuidMismatch", 6, None, None),
    ("node2", "GPU-006aa3c3-b59a-4fc1-8480-c5676c7bedbe", TYPE, None, None, None),
    ("node2", "GPU-41ee1864-ebdc-4846-a304-f49ca3105f9d", CORE, 7, None, 20),
    ("node2", "GPU-477b6dba-1cb6-4de4-9aa8-14ec4cf4db8a", CORE, 0, None, 20),
    ("node2", "GPU-9518dec4-e81e-44b5-973f-567be552fd4c", MEMORY, 0, 20480, None),
    ("node2", "GPU-acaecde2-cfed-4240-8d86-3155a7648a8b", NUMA, None, None, None),
    ("node2", "GPU-c12ea36b-23c1-400a-a18f-df9d25b956f0", MEMORY, 0, 20480, None),
    ("node2", "GPU-f4c45e36-2860-4050-99bd-17a437c3e53c", MEMORY, 0, 20480, None),
    ("node3", "GPU-0fs12a5-e98b-a25b-s454-cf5c855d1448", MEMORY, 0, 20480, None),
    ("node3", "GPU-62b7408e-edb2-41d1-bc91-f46165c61130", MEMORY, 0, 1000, None),
    ("node3", "GPU-f4c45e36-2860-4050-99bd-17a437c3e53c", CORE, 4, None, 20),
    ("node4", "GPU-acaecde2-cfed-4240-8d86-3155a7648a8b", MEMORY, 0, 20480, None),
    ("node4", "GPU-c86aa2dc-456d-4a76-966e-8c09c16139b8", CORE, 7, None, 20),
    ("node4", "GPU-f5fa8195-324f-47be-a514-c3f856b4fef2", MEMORY, 0, 20480, None),
]


def list_printed(row: DeviceRow) -> tuple[object, ...]:
    requested_amounts = (row.memory_requested_mib, row.cores_requested_percent)
    return (row.node, row.uuid, row.verdict, row.device_index, *requested_amounts)


def test_all_22_lines_about_devices_are_rows_with_their_node_and_numbers() -> None:
    reader = HamiLog()
    rows = list_devices(read(*PROPOSAL, reader=reader))
    assert [list_printed(row) for row in rows] == PRINTED
    assert reader.counts.lines["unknown"] == reader.counts.lines["noise"] == 0


def test_one_uuid_that_stands_on_two_nodes_is_two_devices() -> None:
    rows = {(row.node, row.uuid): row for row in list_devices(read(*PROPOSAL))}
    assert rows["node2", "GPU-41ee1864-ebdc-4846-a304-f49ca3105f9d"].cores_used_percent == 95
    assert rows["node1", "GPU-41ee1864-ebdc-4846-a304-f49ca3105f9d"].cores_used_percent == 89


def test_a_device_without_a_uuid_has_what_its_line_says_of_it() -> None:
    [conflict] = [row for row in list_devices(read(*PROPOSAL)) if (row.node, row.uuid) == ("node1", "#0")]
    assert conflict.slots_used == 9


def test_requests_without_a_start_line_are_those_of_the_attempt_that_follows() -> None:
    [old] = [attempt for attempt in summarize_attempts(read(*PROPOSAL)) if attempt.pod.name == "gpu-pod"]
    [request] = old.requests
    assert (request.vendor, request.count, request.memory_mib, request.cores_percent) == ("NVIDIA", 2, 3000, 30)
    assert old.scheduler_message == "no available node, all node scores do not meet"
    assert old.started_at.microsecond == 272812


def test_requests_without_a_start_line_are_nobodys_where_two_pods_may_claim_them() -> None:
    line = PROPOSAL[0]
    [old] = summarize_attempts(read(line, line, *PROPOSAL[1:3]))
    assert old.requests == []


def test_requests_without_a_start_line_are_not_those_of_a_pod_that_starts_afterwards() -> None:
    line = a_line('"collect requestreqs" counts=[{"NVIDIA":{"Nums":2,"Type":"NVIDIA","Memreq":3000}}]')
    [attempt] = summarize_attempts(read(line, write_start(seconds=0.1), write_failure(1, seconds=0.2)))
    assert attempt.missing == "hami-log does not say: requests, container names, names of refused nodes"


@pytest.mark.parametrize(("text", "code"), [
    ("card type mismatch, continuing...", "CardTypeMismatch"),
    ("card uuid mismatch,", "CardUuidMismatch"),
    ("Numa not fit, resotoreing", "NumaNotFit"),
    ("the container wants exclusive access to an entire card, but the card is already in use", CONFLICT),
    ("card Insufficient remaining memory", "CardInsufficientMemory"),
    ("card insufficient remaining core", "CardInsufficientCore"),
    ("card Insufficient remaining cores", "CardInsufficientCore"),
    ("can't allocate core=0 job to an already full GPU", "CardComputeUnitsExhausted"),
])  # fmt: skip
def test_the_texts_before_the_codes_are_read_as_their_codes(text: str, code: str) -> None:
    line = a_line(f'"{text}" pod="ml/trainer" node="node1" device="GPU-7"', seconds=0.02)
    assert [(row.node, row.uuid, row.verdict) for row in list_devices(read(write_start(), line, write_failure(1)))] == [
        ("node1", "GPU-7", code)
    ]


@pytest.mark.parametrize("text", ["NodeInsufficientDevice", "request devices nums cannot exceed the total number"])
def test_a_node_with_too_few_devices_is_refused_with_both_numbers(text: str) -> None:
    line = a_line(f'{text} pod="ml/ml/trainer" node="node2" request devices nums=2 node device nums=1', seconds=0.02)
    [summary] = summarize_attempts(read(write_start(), write_request(2), line, write_failure(1)))
    [refusal] = summary.refusals
    assert (summary.nodes, refusal.bare) == (["node2"], "NodeInsufficientDevice")
    assert refusal.cause == "2 requested, the node has 1"


def refuse_short_node(has: int) -> bytes:
    text = (
        f'"NodeInsufficientDevice" pod="ml/trainer" request devices nums=2 node device nums (type)={has} type="NVIDIA"'
    )
    return a_line(text, seconds=0.02)


def test_numbers_of_nodes_that_a_line_does_not_name_are_a_nodes_where_all_have_the_same() -> None:
    refused = [write_unfit(node, ReasonCode.NODE_INSUFFICIENT_DEVICE) for node in ("node1", "node2")]
    [same] = summarize_attempts(
        read(write_start(), write_request(2), refuse_short_node(1), refuse_short_node(1), *refused, write_failure(2))
    )
    assert [refusal.cause for refusal in same.refusals] == ["2 requested, the node has 1"]
    [mixed] = summarize_attempts(
        read(write_start(), write_request(2), refuse_short_node(1), refuse_short_node(0), *refused, write_failure(2))
    )
    assert [refusal.cause for refusal in mixed.refusals] == [""]
    assert same.refused_nodes == mixed.refused_nodes == {}


def test_nodes_with_too_few_devices_are_counted_where_no_line_names_them() -> None:
    [summary] = summarize_attempts(
        read(write_start(), write_request(2), refuse_short_node(1), refuse_short_node(0), write_failure(3))
    )
    assert summary.refused_nodes == {"NodeInsufficientDevice": 2}
    assert summary.nodes == []


def test_a_node_that_was_filtered_out_has_the_amounts_requested_and_available() -> None:
    begun = b"I0211 10:30:15.123456  1  filter.go:125] Filtering node gpu-node-01 for pod test-pod"
    reason = b"CardInsufficientMemory, requested 8192Mi but available 4096Mi"
    filtered = b"I0211 10:30:15.123789  1  filter.go:150] Node gpu-node-01 filtered out: " + reason
    reader = HamiLog()
    [summary] = summarize_attempts(read(begun, filtered, reader=reader))
    [refusal] = summary.refusals
    assert (summary.pod.name, summary.nodes, refusal.bare) == ("test-pod", ["gpu-node-01"], "CardInsufficientMemory")
    assert refusal.cause == "requested 8192Mi but available 4096Mi"
    assert reader.counts.lines["event"] == 2


def test_a_pod_without_a_namespace_gets_that_of_its_event_line() -> None:
    log = [
        a_line("Filtering node node1 for pod trainer", seconds=0.01),
        a_line("Node node1 filtered out: CardNotHealth", seconds=0.02),
        write_failure(1),
    ]
    [summary] = summarize_attempts(read(*log))
    assert (str(summary.pod), summary.nodes, summary.status) == ("ml/trainer", ["node1"], "failed")


def test_the_counts_of_a_nodes_own_line_replace_what_it_was_filtered_out_for() -> None:
    log = [
        write_start(),
        a_line("Filtering node node1 for pod ml/trainer", seconds=0.01),
        write_unfit("node1", "2/2 CardInsufficientMemory"),
        a_line("Node node1 filtered out: CardInsufficientMemory, requested 8192Mi but available 4096Mi", seconds=0.021),
        write_failure(1),
    ]
    [summary] = summarize_attempts(read(*log))
    assert [refusal.counts for refusal in summary.refusals] == [{"CardInsufficientMemory": 2}]


def test_an_unregistered_node_that_a_line_names_with_its_pod_is_one_of_the_attempt() -> None:
    line = a_line('"node unregistered" pod="ml/trainer" node="cpu-1" error="node cpu-1 not found"', seconds=0.02)
    both = summarize_attempts(
        read(write_start(), write_start("other", seconds=0.001), line, write_failure(1), write_failure(1, "ml/other"))
    )
    assert [summary.nodes for summary in both] == [["cpu-1"], []]
