"""KAI's own output: what was decided and why, findings, and what the log leaves open."""

from typing import Any

import pytest

from engine.summaries import attempt_audit
from engine.summaries.answer import build_schedulerlog
from ingest.readers.kai import KaiLog
from ingest.readers.kai.framing import LogMessage
from ingest.readers.kai.grammar import GRAMMAR, parse
from ingest.reading.protocol import EVENT, NOISE, UNKNOWN
from schemas.codec.records import EncodedRecord, Rejected, decode, encode
from schemas.events import Event
from tests.support.builders.kai_lines import (
    CONSOLE,
    JSON,
    TAGS,
    block,
    list_devices,
    list_findings,
    print_lines,
    read,
    read_texts,
    summarize_attempts,
)

BIND_REQUEST = (
    "cache/cache.go: Creating bind request for task <team-a/infer-0> to node <gpu-0>"
    " gpuGroup: <[g]>, requires: <1> GPUs"
)


def encode_all(events: list[Event]) -> list[EncodedRecord]:
    return [encode(event) for event in events]


@pytest.mark.parametrize("line", GRAMMAR["line"], ids=lambda line: line["kind"])
def test_every_sample_of_the_grammar_is_read_as_its_kind(line: dict[str, Any]) -> None:
    for caller in line["callers"]:
        for sample in line["samples"]:
            message = parse(LogMessage(b"2026-11-21T03:13:34.561Z", caller.encode(), "s1", sample.encode()))
            assert message is not None
            assert message.pattern.kind == line["kind"]


@pytest.mark.parametrize("end", [b',"more":1}', b',"more":"\\u0041"}'], ids=["another key", "an escape"])
def test_json_gives_the_same_events_whether_it_is_plain_or_has_to_be_decoded(end: bytes) -> None:
    plain = read_texts(JSON)
    assert encode_all(read([line[:-1] + end for line in plain])) == encode_all(read(plain))


def test_a_log_whose_form_changes_gives_the_events_of_its_parts() -> None:
    console, json = (
        read_texts(CONSOLE),
        [line.replace(b'"sessionID":"s', b'"sessionID":"j') for line in read_texts(JSON)],
    )
    assert encode_all(read([*console, *json])) == [*encode_all(read(console)), *encode_all(read(json))]


@pytest.mark.parametrize("case", [CONSOLE, JSON])
def test_devices_get_reasons_where_kai_prints_only_that_it_is_unable_to_schedule(case: str) -> None:
    """Two devices of 40960 MiB, 20000 of each allocated; the pod requests 30000 on one device."""
    attempt = summarize_attempts(read(read_texts(case)))[0]
    answer = build_schedulerlog(attempt)
    assert str(attempt.pod) == "team-a/infer-0"
    assert (answer.status, answer.filter.status) == ("failed", "failed")
    assert [(node.name, node.containers[0].reason) for node in answer.filter.nodes] == [
        ("gpu-0", "2/2 CardInsufficientMemory")
    ]
    assert "Unable to schedule pod" in attempt.scheduler_message
    (report,) = attempt.reports
    assert (report.source, report.levels) == ("kai-log", [5, 6, 7])
    assert "the memory asked for" in report.not_reported


def test_the_numbers_of_the_devices_are_those_of_the_lines_about_shared_gpus() -> None:
    rows = [row for row in list_devices(read(read_texts(CONSOLE), KaiLog({"gpu-0": 40960}))) if row.node == "gpu-0"][:2]
    assert [(row.uuid, row.verdict, row.memory_total_mib, row.memory_used_mib) for row in rows] == [
        ("grp-0", "CardInsufficientMemory", 40900, 20000),
        ("grp-1", "CardInsufficientMemory", 40900, 20000),
    ]
    assert {(row.numa, row.slots_total, row.cores_used_percent) for row in rows} == {(None, None, None)}


def test_numbers_that_the_level_leaves_out_are_unknown() -> None:
    """Level 7 prints a device before a pod is put on it, and not afterwards."""
    rows = list_devices(read(read_texts(JSON)))[:2]
    assert [(row.uuid, row.memory_total_mib, row.memory_used_mib) for row in rows] == [
        ("grp-0", None, None),
        ("grp-1", None, None),
    ]


@pytest.mark.parametrize("case", [CONSOLE, JSON])
def test_a_placement_on_releasing_memory_is_a_finding(case: str) -> None:
    (finding,) = list_findings(read(read_texts(case), KaiLog({"gpu-0": 40960})))
    assert (finding.finding, finding.node, finding.device) == ("ReleasingMemoryCounted", "gpu-0", "grp-0")
    assert finding.numbers["memory_allocated_mib"] == 35000
    assert finding.numbers["memory_releasing_mib"] == 30000
    assert finding.numbers["memory_available_mib"] == 5900
    assert finding.evidence[-1].startswith("Statement pipelined task: <team-a/infer-0> to node: <gpu-0>")


def test_a_pod_that_waits_for_others_to_leave_is_pending_with_its_node() -> None:
    waiting = summarize_attempts(read(read_texts(CONSOLE)))[1]
    assert (waiting.status, waiting.chosen, waiting.nominated) == ("pending", "gpu-0", "gpu-0")
    assert waiting.picked_devices == ["grp-0"]
    assert waiting.requests[0].memory_mib == 30000


def test_a_share_of_a_device_is_a_percentage() -> None:
    frac = summarize_attempts(read(read_texts(CONSOLE)))[2]
    assert (frac.requests[0].count, frac.requests[0].memory_percent) == (1, 70)
    assert build_schedulerlog(frac).filter.nodes[0].containers[0].reason == "2/2 CardInsufficientMemory"
    assert frac.scheduler_message.startswith("no nodes with enough resources were found: 1 node(s)")


def test_an_attempt_whose_end_is_not_in_the_log_is_incomplete() -> None:
    for attempt in summarize_attempts(read(read_texts(CONSOLE)))[3:]:
        assert not attempt.complete
        assert "the end of the attempt is missing" in attempt.missing


def test_the_tags_of_the_patch_give_an_audit_finding() -> None:
    reader = KaiLog()
    events = read(read_texts(TAGS), reader)
    (finding,) = list_findings(events)
    assert finding.finding == "ReleasingMemoryCounted"
    assert finding.numbers == {
        "memory_total_mib": 40900, "memory_allocated_mib": 35000, "memory_releasing_mib": 30000,
        "memory_requested_mib": 30000, "memory_available_mib": 5900, "is_waiting": 1,
        "memory_available_with_releasing_mib": 35900,
    }  # fmt: skip
    assert finding.evidence[0].startswith("[RESOURCE_CHECK] Node <gpu-0>: GPU <grp-0>")
    (attempt,) = summarize_attempts(events)
    assert (attempt.chosen, attempt.picked_devices) == ("gpu-0", ["grp-0"])
    assert reader.counts.lines[UNKNOWN] == 0


def test_memory_that_changed_between_filter_and_allocation_is_a_finding() -> None:
    lines = [line.replace(b"Allocated=35000 Rel", b"Allocated=37000 Rel") for line in read_texts(TAGS)]
    changed = next(finding for finding in list_findings(read(lines)) if finding.finding == "MemoryChanged")
    assert changed.numbers["memory_allocated_before_mib"] == 35000
    assert changed.numbers["memory_allocated_after_mib"] == 37000
    assert [line.partition("]")[0] for line in changed.evidence] == ["[GPU_FILTER", "[RESOURCE_CHECK"]


def test_a_bound_over_commitment_is_a_finding_too() -> None:
    lines = [line.replace(b"isPipelineOnly=true", b"isPipelineOnly=false") for line in read_texts(TAGS)]
    events = read(lines)
    (finding,) = list_findings(events)
    assert finding.numbers["is_waiting"] == 0
    (attempt,) = summarize_attempts(events)
    (over,) = attempt_audit.audit_attempt(attempt)
    assert (over.finding, over.device) == ("Overcommitted", "grp-0")
    assert over.numbers == {"memory_total_mib": 40900, "memory_used_mib": 35000, "memory_taken_mib": 30000}


@pytest.mark.parametrize("case", [TAGS, CONSOLE])
def test_a_pipelined_placement_is_no_overcommit(case: str) -> None:
    """KAI pipelines where EnoughIdle is false: it waits until the memory is free, and then binds."""
    attempts = summarize_attempts(read(read_texts(case), KaiLog({"gpu-0": 40960})))
    (waiting,) = [attempt for attempt in attempts if attempt.nominated]
    assert waiting.picked[0].memory_used_mib == 35000
    assert attempt_audit.audit_attempt(waiting) == []


def test_a_device_with_enough_free_memory_is_no_finding() -> None:
    lines = [line.replace(b"35000", b"5000").replace(b"30000 MB", b"300 MB") for line in read_texts(TAGS)]
    assert list_findings(read(lines)) == []


def test_after_an_allocation_tags_without_a_session_begin_another_attempt() -> None:
    attempts = summarize_attempts(read(read_texts(TAGS) * 2))
    assert len({attempt.attempt_id for attempt in attempts}) == 2


def test_a_detailed_fit_error_gives_each_node_its_reason() -> None:
    text = (
        "status_updater/default_status_updater.go: setting message for task: infer-0, \n"
        "<gpu-0>: Node didn't have enough resources: Each gpu on the node has a gpu memory capacity of 40900 Mib."
        " 100000 Mib of gpu memory has been requested..\n"
        "<gpu-1>: Node didn't have enough resources: GPUs, requested: 0.7, used: 2, capacity: 2.\n"
        "no nodes with enough resources were found."
    )
    condition = (
        "status_updater/default_status_updater.go: Updating pod condition for team-a/infer-0 to (PodScheduled==False)"
    )
    reader = KaiLog()
    (attempt,) = summarize_attempts(read(print_lines(text, condition), reader))
    assert [(node.name, node.containers[0].reason) for node in build_schedulerlog(attempt).filter.nodes] == [
        (
            "gpu-0",
            (
                "Node didn't have enough resources: GPU memory: Each gpu on the node has a gpu memory capacity of"
                " 40900 Mib. 100000 Mib of gpu memory has been requested"
            ),
        ),
        ("gpu-1", "Node didn't have enough resources: GPUs: requested: 0.7, used: 2, capacity: 2"),
    ]
    assert attempt.requests[0].memory_mib == 100000
    assert reader.counts.lines == {EVENT: 5, NOISE: 0, UNKNOWN: 0}


def test_nodes_without_names_are_counted_by_reason() -> None:
    text = "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPU memory."
    lines = print_lines(
        "framework/session.go: Session s1aaaa with <1> Jobs, <2> Queues and <5> Nodes",
        f"status_updater/default_status_updater.go: setting message for task: infer-0, {text}",
        "status_updater/default_status_updater.go: Updating pod condition for team-a/infer-0 to (PodScheduled==False)",
    )
    (attempt,) = summarize_attempts(read(lines))
    assert attempt.refused_nodes == {"node(s) didn't have enough resources: GPU memory": 2}
    assert (attempt.offered_nodes, attempt.scheduler_message) == (5, text)


def test_a_quota_refusal_is_the_error_of_the_attempt() -> None:
    text = "OverLimit: team-a quota has reached the allowable limit of GPUs. Limit is 1 GPUs."
    lines = print_lines(
        f"status_updater/default_status_updater.go: setting message for task: train-0, {text}",
        "status_updater/default_status_updater.go: Updating pod condition for team-a/train-0 to (PodScheduled==False)",
    )
    (attempt,) = summarize_attempts(read(lines))
    assert (attempt.status, attempt.error) == ("failed", text)


def test_at_the_default_level_a_bind_request_shows_where_the_pod_goes() -> None:
    (attempt,) = summarize_attempts(read(print_lines(BIND_REQUEST)))
    assert (attempt.status, attempt.chosen) == ("pending", "gpu-0")


def test_a_failed_bind_is_an_event() -> None:
    lines = print_lines(
        BIND_REQUEST,
        'framework/statement.go: Failed to bind task <team-a/infer-0>. Error: bindrequests "infer-0" already exists',
    )
    (attempt,) = summarize_attempts(read(lines))
    assert attempt.bind is not None
    assert (attempt.status, attempt.bind.error) == ("failed", 'bindrequests "infer-0" already exists')


@pytest.mark.parametrize("case", [CONSOLE, JSON, TAGS])
def test_reading_twice_and_in_pieces_gives_the_same_events(case: str) -> None:
    lines = read_texts(case)
    expected_records = [encode(event) for event in read(lines)]
    assert [encode(event) for event in read(lines)] == expected_records
    reader, pieces = KaiLog(), []
    for index, line in enumerate(lines):
        pieces += list(reader.feed(block([line], number=index + 1)))
        saved, reader = reader.save(), KaiLog()
        reader.restore(saved)
    pieces += list(reader.close())
    assert [encode(event) for event in pieces] == expected_records


@pytest.mark.parametrize("case", [CONSOLE, JSON, TAGS])
def test_every_event_is_a_valid_record(case: str) -> None:
    for event in read(read_texts(case)):
        record = encode(event)
        assert not isinstance(decode(record.value, record.headers), Rejected)


@pytest.mark.parametrize("case", [CONSOLE, JSON])
def test_every_line_is_accounted_for(case: str) -> None:
    reader, lines = KaiLog(), read_texts(case)
    read(lines, reader)
    assert sum(reader.counts.lines.values()) == len(lines)
    assert reader.counts.lines[UNKNOWN] == 0


def test_lines_of_another_program_are_unknown_and_keep_a_sample() -> None:
    reader = KaiLog()
    assert read([b"hello", b"", b"\xff\xfe garbage", b'{"level":"INFO"'], reader) == []
    assert reader.counts.lines[UNKNOWN] == 3
    assert "hello" in reader.counts.samples.values()


def test_what_another_version_saved_is_refused() -> None:
    with pytest.raises(ValueError, match="KAI"):
        KaiLog().restore(b'{"sessions": 3}')
    with pytest.raises(ValueError, match="version 1"):
        KaiLog().restore(b'{"version": 1}')
