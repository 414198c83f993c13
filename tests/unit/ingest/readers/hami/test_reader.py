"""The reader of HAMi's log: its results, and the gaps that it leaves open rather than guess."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.summaries.answer import encode_schedulerlog
from engine.summaries.messages import list_messages
from engine.summaries.text import write_refusal
from ingest.lines import klog
from ingest.readers.hami.devices import DeviceInRegistration
from ingest.readers.hami.grammar import load_grammar
from ingest.readers.hami.reader import HamiLog
from schemas.codec.records import MAX_VALUE_BYTES, encode
from schemas.events import AttemptEvent, AttemptSummarized, BindConcluded, DevicesJudged, Event
from tests.conformance.log_replay import compare_log
from tests.support.builders.hami_lines import (
    a_line,
    an_event,
    build_lines,
    list_devices,
    read,
    summarize_attempts,
    write_failure,
    write_fit,
    write_name,
    write_request,
    write_start,
    write_unfit,
)
from tests.support.stress import count_examples

PROPOSAL = (Path(__file__).parent / "cases" / "scheduler-event-proposal.log").read_bytes().splitlines()
RECORDED = Path(__file__).parents[4] / "conformance" / "cases" / "logs"


def list_refusals(summary: AttemptSummarized) -> dict[str, str]:
    return {
        name: write_refusal(summary.refusals[code])
        for name, code in zip(summary.nodes, summary.refusal.tolist(), strict=True)
        if code >= 0
    }


def list_gaps(summary: AttemptSummarized) -> list[str]:
    return summary.reports[0].not_reported if summary.ended_at else ["end"]


def test_the_proposals_log_gives_its_two_summaries_and_three_scores() -> None:
    attempts = summarize_attempts(read(*PROPOSAL))
    answer = json.loads(encode_schedulerlog(next(attempt for attempt in attempts if attempt.pod.namespace == "llm")))
    nodes = {node["name"]: node for node in answer["filter"]["nodes"]}
    reasons = {name: node["containers"][0].get("reason") for name, node in nodes.items()}
    scores = {name: node["score"] for name, node in nodes.items() if node["status"] == "passed"}
    assert set(reasons["node1"].split(", ")) == {
        "2/8 NumaNotFit",
        "3/8 CardInsufficientMemory",
        "2/8 CardInsufficientCore",
        "1/8 ExclusiveDeviceAllocateConflict",
    }
    assert set(reasons["node2"].split(", ")) == {
        "4/8 CardUuidMismatch",
        "3/8 CardInsufficientMemory",
        "1/8 ExclusiveDeviceAllocateConflict",
    }
    assert scores == {"node3": 0.65, "node4": 0.26, "node5": 0.85}


def test_the_proposals_event_of_an_old_version_is_a_failed_filter_without_nodes() -> None:
    old = next(attempt for attempt in summarize_attempts(read(*PROPOSAL)) if str(attempt.pod) == "default/gpu-pod")
    assert (old.status, old.nodes, old.chosen) == ("failed", [], None)
    assert [message.message for message in list_messages(old)] == ["no available node"]
    assert "offered nodes" in list_gaps(old)


def test_at_level_0_the_event_lines_give_codes_without_counts_of_devices() -> None:
    [summary] = summarize_attempts(
        read(
            write_start(),
            an_event("FilteringFailed", "2 nodes CardInsufficientMemory(node1,node2)"),
            an_event("FilteringFailed", "1 nodes CardCordoned(node1)"),
            write_failure(3),
        )
    )
    assert list_refusals(summary) == {
        "node1": "CardCordoned, CardInsufficientMemory",
        "node2": "CardInsufficientMemory",
    }
    assert summary.offered_nodes == 3
    assert {"requests", "reasons", "names of refused nodes", "devices"} <= set(list_gaps(summary))
    assert not summary.complete
    assert [message.message for message in list_messages(summary)] == [
        "1 nodes CardCordoned(node1)",
        "2 nodes CardInsufficientMemory(node1,node2)",
        "no available node, 3 nodes do not meet",
    ]


def test_at_level_0_scores_are_those_of_the_event_line_and_marked_as_rounded() -> None:
    message = "find fit node(node2), 1 nodes not fit, 2 nodes fit(node1:0.65,node2:4.10)"
    [summary] = summarize_attempts(read(write_start(), an_event("FilteringSucceed", message)))
    assert dict(zip(summary.nodes, summary.score.tolist(), strict=True)) == pytest.approx({"node1": 0.65, "node2": 4.1})
    assert (summary.chosen, summary.fit_nodes, summary.offered_nodes) == ("node2", 2, 3)
    assert "exact scores" in list_gaps(summary)
    assert list_messages(summary)[0].message == message


def test_the_nodes_own_line_has_the_exact_score() -> None:
    message = "find fit node(node1), 0 nodes not fit, 1 nodes fit(node1:3.12)"
    [summary] = summarize_attempts(
        read(write_start(), write_request(1), write_fit("node1", "3.124888"), an_event("FilteringSucceed", message))
    )
    assert summary.score.tolist() == [pytest.approx(3.124888, abs=1e-6)]
    assert "exact scores" not in list_gaps(summary)


def test_every_device_of_a_refused_node_has_a_row_when_registrations_give_its_node() -> None:
    registered = {f"GPU-{index}": DeviceInRegistration("node1", "A100", 40960, 100, 10, 0) for index in range(2)}
    log = [
        write_start(),
        write_name(0, "worker"),
        write_request(1),
        a_line('"CardInsufficientMemory" pod="ml/trainer" device="GPU-0" device index=0 device total memory=40960'
               ' device used memory=30000 request memory=20480', seconds=0.02),
        a_line('"CardNotHealth" pod="ml/trainer" device="GPU-1" health=false', seconds=0.02),
        write_unfit("node1", "1/2 CardInsufficientMemory, 1/2 CardNotHealth"),
        write_failure(1),
    ]  # fmt: skip
    events = read(*log, reader=HamiLog(devices=registered))
    [record] = [event for event in events if isinstance(event, DevicesJudged)]
    rows = {row.uuid: row for row in list_devices(events)}
    assert (rows["GPU-0"].verdict, rows["GPU-0"].memory_used_mib, rows["GPU-0"].model) == (
        "CardInsufficientMemory",
        30000,
        "A100",
    )
    assert rows["GPU-1"].memory_used_mib is None
    assert not record.partial
    [summary] = summarize_attempts(events)
    assert summary.complete


def test_devices_without_a_registration_keep_their_verdict_and_no_node_is_guessed() -> None:
    line = a_line('"CardNotHealth" pod="ml/trainer" device="GPU-1" health=false', seconds=0.02)
    events = read(write_start(), write_request(1), line, write_unfit("node1", "1/1 CardNotHealth"), write_failure(1))
    assert [(row.node, row.uuid, row.verdict) for row in list_devices(events)] == [("", "GPU-1", "CardNotHealth")]
    [summary] = summarize_attempts(events)
    assert summary.nodes == ["node1"]
    assert "nodes of devices" in list_gaps(summary)


def test_devices_that_were_taken_in_vain_have_the_code_for_it() -> None:
    registered = {"GPU-0": DeviceInRegistration("node1"), "GPU-1": DeviceInRegistration("node1")}
    events = read(
        write_start(), write_request(2),
        a_line('"find fit device" pod="ml/trainer" device="GPU-0"', seconds=0.02),
        a_line('"CardCordoned" pod="ml/trainer" device="GPU-1"', seconds=0.02),
        write_unfit("node1", "1/2 AllocatedCardsInsufficientRequest, 1/2 CardCordoned"), write_failure(1),
        reader=HamiLog(devices=registered),
    )  # fmt: skip
    [record] = [event for event in events if isinstance(event, DevicesJudged)]
    verdicts = {row.uuid: row.verdict for row in list_devices(events)}
    assert verdicts == {"GPU-0": "AllocatedCardsInsufficientRequest", "GPU-1": "CardCordoned"}
    assert not record.partial


def test_which_container_a_node_refused_is_open_when_several_request_and_no_device_was_tried() -> None:
    [summary] = summarize_attempts(
        read(write_start(), write_request(1, 1), write_unfit("node1", "1/1 CardNotHealth"), write_failure(1))
    )
    assert summary.refused_by.tolist() == [-1]
    assert "refusing containers" in list_gaps(summary)
    [node] = json.loads(encode_schedulerlog(summary))["filter"]["nodes"]
    assert node["containers"] == [{"name": "", "status": "failed", "reason": "1/1 CardNotHealth"}]


def test_the_device_tried_last_shows_which_container_a_node_refused() -> None:
    tried = [
        a_line(f'"scoring pod" pod="ml/trainer" device="GPU-0" Memreq={memory} MemPercentagereq=101 Coresreq=20 Nums=1'
               ' device index=0', seconds=0.015)
        for memory in (20480, 20479)
    ]  # fmt: skip
    log = [write_start(), write_request(1, 1), *tried, write_unfit("node1", "1/1 CardNotHealth"), write_failure(1)]
    [summary] = summarize_attempts(read(*log, reader=HamiLog(devices={"GPU-0": DeviceInRegistration("node1")})))
    assert summary.refused_by.tolist() == [1]


def test_lines_of_two_pods_with_one_name_do_not_mix() -> None:
    log = [
        write_start(namespace="ml"), write_start(namespace="dev", seconds=0.001),
        write_unfit("node1", "1/1 CardNotHealth", "ml/trainer"),
        write_unfit("node1", "1/1 CardCordoned", "dev/trainer"),
        a_line('"No available nodes meet the required scores" pod="trainer"', seconds=0.025),
        write_failure(1, "dev/trainer"), write_failure(1, "ml/trainer"),
    ]  # fmt: skip
    reasons = {summary.pod.namespace: list_refusals(summary)["node1"] for summary in summarize_attempts(read(*log))}
    assert reasons == {"ml": "1/1 CardNotHealth", "dev": "1/1 CardCordoned"}


def test_an_event_line_that_comes_after_the_next_attempt_began_ends_the_attempt_before() -> None:
    log = [
        write_start(), write_unfit("node1", "1/1 CardNotHealth"),
        a_line('"No available nodes meet the required scores" pod="trainer"', seconds=0.025),
        write_start(seconds=1.0), write_failure(2, seconds=1.001),
        write_unfit("node1", "1/1 CardCordoned", seconds=1.002), write_failure(3, seconds=1.003),
    ]  # fmt: skip
    first, second = summarize_attempts(read(*log))
    assert (list_refusals(first)["node1"], first.offered_nodes) == ("1/1 CardNotHealth", 2)
    assert (list_refusals(second)["node1"], second.offered_nodes) == ("1/1 CardCordoned", 3)


def test_an_attempt_whose_end_never_comes_is_pending() -> None:
    [summary] = summarize_attempts(read(write_start(), write_unfit("node1", "1/1 CardNotHealth")))
    assert (summary.ended_at, summary.status, summary.complete) == (None, "pending", False)


def test_after_ten_minutes_of_log_a_silent_attempt_is_finished_as_far_as_it_is_known() -> None:
    reader = HamiLog()
    events = list(
        reader.feed(
            build_lines([write_start(), write_unfit("node1", "1/1 CardNotHealth"), write_start("other", seconds=700.0)])
        )
    )
    assert [str(event.pod) for event in events if isinstance(event, AttemptEvent)] == ["ml/trainer"]


def test_a_pod_that_requests_no_device_gives_no_attempt() -> None:
    assert read(write_start(), a_line('"Pod does not request any resources" pod="trainer"', seconds=0.01)) == []


def test_unregistered_nodes_belong_to_the_only_attempt_that_looks_for_its_nodes() -> None:
    line = a_line('"Nodes failed during usage retrieval" nodes={"cpu-node":"node unregistered"}', seconds=0.015)
    [alone] = summarize_attempts(read(write_start(), write_request(1), line, write_failure(1)))
    assert alone.nodes == ["cpu-node"]
    both = summarize_attempts(
        read(write_start(), write_start("other", seconds=0.001), line, write_failure(1), write_failure(1, "ml/other"))
    )
    assert [summary.nodes for summary in both] == [[], []]


def bound(name: str = "trainer") -> list[bytes]:
    return [
        a_line(f'"Attempting to bind pod to node" pod="{name}" namespace="ml" node="node1"', seconds=1.0),
        an_event("BindingSucceed", f"Successfully binding node [node1] to ml/{name}", f"ml/{name}", seconds=1.5),
    ]


def test_a_bind_belongs_to_the_attempt_that_chose_the_node() -> None:
    chosen = an_event("FilteringSucceed", "find fit node(node1), 0 nodes not fit, 1 nodes fit(node1:3.12)")
    [summary] = summarize_attempts(read(write_start(), chosen, *bound()))
    assert (summary.status, summary.bind and summary.bind.node) == ("succeeded", "node1")


def test_a_bind_whose_filter_is_not_in_the_log_is_an_event_by_itself() -> None:
    [event] = read(*bound())
    assert isinstance(event, BindConcluded)
    assert (event.bound, event.bind_started_at) == (True, datetime(2026, 11, 21, 3, 6, 1, tzinfo=UTC))


def test_a_failed_bind_has_the_error_that_kube_scheduler_was_given() -> None:
    log = [
        a_line('"Attempting to bind pod to node" pod="trainer" namespace="ml" node="gone"', seconds=1.0),
        a_line(r'"Failed to get node from cache" err="node \"gone\" not found" node="gone"', seconds=1.1, severity="E"),
        an_event("BindingFailed", "failed to get node gone", seconds=1.2),
    ]
    [event] = read(*log)
    assert isinstance(event, BindConcluded)
    assert (event.bound, event.error) == (False, 'node "gone" not found')


@pytest.mark.parametrize("text", [
    b"", b"] ", b"I", b"I1121 03:06:23.217054 1 a.go:1] ", a_line('"NodeUnfitPod" pod="ml/trainer"'),
    a_line('"NodeUnfitPod" pod="a/b/c" node="n" reason="r"'), a_line('"NodeFitPod" pod="ml/t" node="n" score=high'),
    a_line('"Event occurred" object="ml/t" reason="FilteringFailed" message="unclosed'),
    a_line('"Starting schedule filter process" pod="" uuid="" namespace=""'),
    a_line('"Resource requirements collected" pod="ml/trainer" requests=[[[').replace(b"1121", b"9999"),
])  # fmt: skip
def test_lines_that_only_look_like_hamis_are_counted_as_unknown(text: bytes) -> None:
    reader = HamiLog()
    assert read(text, reader=reader) == []
    assert reader.counts.lines["unknown"] == (1 if text else 0)
    assert sum(reader.counts.shapes.values()) == (1 if text else 0)


@pytest.mark.parametrize("log", sorted(RECORDED.glob("*.log")), ids=lambda path: path.stem)
def test_reading_a_log_in_any_blocks_or_after_a_restart_gives_the_same_events(log: Path) -> None:
    texts = log.read_bytes().splitlines()
    records = [encode(event) for event in read(*texts)]
    reader = HamiLog()
    events: list[Event] = []
    for start in range(0, len(texts), 97):
        events += reader.feed(build_lines(texts[start : start + 97]))
        saved = reader.save()
        reader = HamiLog()
        reader.restore(saved)
    events += reader.close()
    assert [encode(event) for event in events] == records


@pytest.mark.parametrize("log", sorted(RECORDED.glob("*.log")), ids=lambda path: path.stem)
def test_no_line_of_hamis_own_logs_is_unknown(log: Path) -> None:
    reader = HamiLog()
    read(*log.read_bytes().splitlines(), reader=reader)
    assert dict(reader.counts.shapes) == {}


def test_what_another_version_saved_is_refused() -> None:
    with pytest.raises(ValueError, match="another version"):
        HamiLog().restore(b'{"open": 3}')


@settings(max_examples=count_examples(4))
@given(st.integers(1, 400), st.integers(1, 8))
def test_every_record_fits_whatever_the_size_of_the_cluster(nodes: int, devices: int) -> None:
    log = [write_start(), write_request(1)]
    for node in range(nodes):
        uuids = [f"GPU-{node:05d}-{index}" for index in range(devices)]
        log += [a_line(f'"CardCordoned" pod="ml/trainer" device="{uuid}"', seconds=0.02) for uuid in uuids]
        log.append(write_unfit(f"node-{node:05d}", f"{list_devices}/{list_devices} CardCordoned"))
    events = read(*log, write_failure(nodes))
    assert all(len(encode(event).value) < MAX_VALUE_BYTES for event in events)
    [summary] = summarize_attempts(events)
    assert len(summary.nodes) == nodes


@pytest.mark.parametrize("log", sorted(RECORDED.glob("*.log")), ids=lambda path: path.stem)
def test_a_log_at_level_0_gives_less_and_nothing_else(log: Path, tmp_path: Path) -> None:
    def is_level_0(line: bytes) -> bool:
        spelling = load_grammar().find_spelling(line, klog.find_message(line))
        return spelling is not None and spelling.level == 0 and spelling.kind != "noise"

    short = tmp_path / log.name
    short.write_bytes(b"\n".join(line for line in log.read_bytes().splitlines() if is_level_0(line)))
    shutil.copy(log.with_suffix(".expected.json"), tmp_path)
    for difference in (difference for differences in compare_log(short).values() for difference in differences):
        assert difference.fact == "verdict", difference
        ours, true = difference.ours, difference.theirs
        assert ours is None or (isinstance(ours, tuple) and isinstance(true, tuple) and ours[0] == true[0]), difference


def write_old_bind(name: str, clock: str, node: str = "node1") -> bytes:
    fields = f'pod="{name}" namespace="llm" podUID="f1" node="{node}"'
    return f'I0109 {clock}.385637      27 scheduler.go:305] "Bind" {fields}'.encode()


def write_old_error(words: str, error: str, fields: str) -> bytes:
    return f'E0109 06:38:06.100000      27 scheduler.go:327] "{words}" err="{error}" {fields}'.encode()


OLD_END = b"I0109 06:38:07.486448      27 scheduler.go:342] After Binding Process"


def list_binds(*lines: bytes) -> list[tuple[str, bool]]:
    return [(event.pod.name, event.bound) for event in read(*lines) if isinstance(event, BindConcluded)]


def test_a_bind_of_before_2_4_ends_with_a_line_that_names_no_pod() -> None:
    bind = write_old_bind("a", "06:38:05")
    locked = write_old_error("Failed to lock node", "node node1 has been locked within 5 minutes", 'node="node1"')
    failed = write_old_error(
        "Failed to bind pod", "the object has been modified", 'pod="a" namespace="llm" node="node1"'
    )
    assert list_binds(bind, OLD_END) == [("a", True)]
    assert list_binds(bind, locked, OLD_END) == [("a", True)]
    assert list_binds(bind, failed, OLD_END) == [("a", False)]


def test_the_end_of_one_of_two_binds_is_not_given_to_either() -> None:
    assert list_binds(write_old_bind("a", "06:38:05"), write_old_bind("b", "06:38:06", "node2"), OLD_END) == []
