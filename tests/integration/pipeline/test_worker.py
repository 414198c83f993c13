"""The worker and the index writer as processes, on a real broker and a real index; everything is killed that can be."""

import random
import re
import subprocess
import sys
import time
import uuid
from datetime import timedelta

import httpx

from engine.summaries.fold import summarize
from engine.summaries.retries import resolve
from pipeline.worker.published import WITHOUT_COMPARISON
from schemas.codec.chunking import join
from schemas.codec.records import EncodedRecord, Rejected, decode, encode, encode_value
from schemas.documents.attempts import read_repetition, read_summary
from schemas.documents.devices import read_devices_judged
from schemas.events import (
    AttemptConcluded,
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    DevicesJudged,
    MessagesEmitted,
    Request,
)
from schemas.indices import INDICES
from schemas.topics import DEAD_LETTER_HEADERS, TOPICS
from tests.support.builders.attempts import STARTED, a_bind, an_attempt, build_common
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

DEVICES = {f"node{i}": [["NumaNotFit", "CardCordoned", "CardInsufficientMemory"]] for i in range(6)}
FITTING = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"] * 2]}


def build_attempts(namespace: str, count: int, *, bound: bool = True) -> list[list[AttemptEvent]]:
    """Build attempts of which every second is refused by all nodes; the others are placed and bound."""
    attempts = []
    for number in range(count):
        common = build_common(f"pod-{number}", namespace) | {"started_at": STARTED + timedelta(seconds=number)}
        if number % 2:
            attempts.append(an_attempt(DEVICES, **common))
        else:
            bind = a_bind(**common) if bound else None
            attempts.append([*an_attempt(FITTING, chosen="node1", **common), *([bind] if bind else [])])
    return attempts


def read_messages(running: Pipeline, namespace: str) -> list[MessagesEmitted]:
    events = (decode(record.value, record.headers) for record in running.read_topic("schedulerlog.messages"))
    return [event for event in events if isinstance(event, MessagesEmitted) and event.pod.namespace == namespace]


def strip_comparison(summary: AttemptSummarized | Rejected) -> AttemptSummarized:
    """Strip what the comparison with the pod's attempt before adds."""
    assert isinstance(summary, AttemptSummarized), summary
    return summary.model_copy(update=WITHOUT_COMPARISON)


def assert_each_is_stored_once_as_it_was_sent(
    running: Pipeline, namespace: str, sent: list[list[AttemptEvent]]
) -> None:
    expected = {events[0].attempt_id: summarize(events) for events in sent}

    def read_stored() -> dict[str, AttemptSummarized]:
        documents = running.get_attempts(namespace)
        return {key: strip_comparison(read_summary(document)) for key, document in documents.items()}

    def is_right(summaries: dict[str, AttemptSummarized]) -> bool:
        return {key: encode_value(summary) for key, summary in summaries.items()} == {
            key: encode_value(summary) for key, summary in expected.items()
        }

    documents = until(read_stored, is_right)
    assert documents.keys() == expected.keys()
    assert is_right(documents)


def test_attempts_become_documents_summaries_and_messages(running: Pipeline) -> None:
    sent = build_attempts("plain", 4)
    running.send([event for events in sent for event in events])
    assert_each_is_stored_once_as_it_was_sent(running, "plain", sent)
    lines = [line.message for event in read_messages(running, "plain") for line in event.lines]
    assert sorted(set(lines)) == [
        "6 nodes CardCordoned(node0,node1,node2,node3,node4,node5)",
        "6 nodes CardInsufficientMemory(node0,node1,node2,node3,node4,node5)",
        "6 nodes NumaNotFit(node0,node1,node2,node3,node4,node5)",
        "Successfully binding node [node1] to plain/pod-0",
        "Successfully binding node [node1] to plain/pod-2",
        "find fit node(node1), 1 nodes not fit, 1 nodes fit(node1:0.00)",
        "no available node, 6 nodes do not meet",
    ]
    assert len(lines) == 2 * 2 + 2 * 4
    read = (decode(record.value, record.headers) for record in running.read_topic("schedulerlog.attempts"))
    last = {event.attempt_id: strip_comparison(join([event])) for event in read if isinstance(event, AttemptSummarized)}
    for attempt in sent:
        assert encode_value(last[attempt[0].attempt_id]) == encode_value(summarize(attempt))


def test_device_records_are_stored_as_they_were_sent(running: Pipeline) -> None:
    sent = build_attempts("devices", 3)[::2]
    running.send([event for events in sent for event in events])
    wanted = {"terms": {"attempt_id": [events[0].attempt_id for events in sent]}}
    documents = until(
        lambda: running.get_documents(wanted, "schedulerlog-devices"), lambda documents: len(documents) == 2
    )
    by_id = {event.id: event for events in sent for event in events if isinstance(event, DevicesJudged)}
    for name, document in documents.items():
        read = read_devices_judged(document)
        assert isinstance(read, DevicesJudged)
        assert encode_value(read) == encode_value(by_id[name])


def test_a_worker_killed_in_the_middle_loses_and_repeats_nothing(running: Pipeline) -> None:
    chance = random.Random(7)
    sent = build_attempts("killed", 60)
    for number, events in enumerate(sent):
        running.send(events)
        if number in (11, 23, 41):
            time.sleep(chance.random() / 2)
            running.processes.kill("worker")
            running.start()
    assert_each_is_stored_once_as_it_was_sent(running, "killed", sent)


def a_pending_pod(name: str) -> list[list[AttemptEvent]]:
    """Ten tries, twenty seconds apart; at the eighth a node has free devices for a while."""
    tries = []
    for number in range(10):
        started = STARTED + timedelta(seconds=20 * number)
        common = build_common(name, "retried") | {"started_at": started, "attempt_id": f"{name}-{number}"}
        if number == 7:
            tries.append(an_attempt(DEVICES | {"node0": [["picked"] * 3]}, chosen="node0", **common))
        else:
            tries.append(an_attempt(DEVICES, **common))
    return tries


def test_unchanged_retries_are_stored_as_repetitions_and_counted_once_though_the_worker_is_killed(
    running: Pipeline,
) -> None:
    pods = [a_pending_pod(f"pod-{number}") for number in range(3)]
    sent = [events for tries in zip(*pods, strict=True) for events in tries]
    for number, events in enumerate(sent):
        running.send(events)
        if number in (4, 13, 22):
            running.processes.kill("worker")
            running.start()
    stored = until(lambda: running.get_attempts("retried"), lambda stored: len(stored) == len(sent))
    for tries in pods:
        first = tries[0][0].attempt_id
        documents = [stored[events[0].attempt_id] for events in tries]
        assert [attempt.get("repeats") for attempt in documents[:9]] == [None, *[first] * 6, None, None]
        assert [attempt["episode"] for attempt in documents] == [
            tries[index][0].attempt_id for index in [0] * 7 + [7, 8, 8]
        ]
        assert documents[7]["changes"][0].startswith("node0: 1/3 CardCordoned, 1/3 CardInsufficientMemory")
        for events, document in zip(tries, documents, strict=True):
            base = read_summary(stored[document.get("repeats") or events[0].attempt_id])
            repeated = read_repetition(document)
            assert isinstance(base, AttemptSummarized)
            summary = resolve(repeated, base) if isinstance(repeated, AttemptRepeated) else base
            assert encode_value(strip_comparison(summary)) == encode_value(summarize(events))

    def count_results() -> dict[str, tuple[int, int]]:
        wanted = {"bool": {"filter": [{"term": {"namespace": "retried"}}, {"term": {"dimension": "all"}}]}}
        rows = running.get_documents(wanted, "schedulerlog-trends").values()
        results = {row["result"] for row in rows}
        return {
            result: (
                sum(row["attempts"] for row in rows if row["result"] == result),
                sum(row["devices"] for row in rows if row["result"] == result),
            )
            for result in results
        }

    expected = {"failed": (27, 27 * 18), "pending": (3, 3 * 18)}
    assert until(count_results, lambda counted: counted == expected) == expected
    running.send([event for events in sent for event in events])
    running.settle()
    assert count_results() == expected
    assert running.get_attempts("retried") == stored


def test_a_killed_worker_continues_when_it_is_started_again(running: Pipeline) -> None:
    running.processes.kill("worker")
    sent = build_attempts("again", 2)
    running.send([event for events in sent for event in events])
    running.start()
    stored = until(lambda: running.get_attempts("again"), lambda stored: len(stored) == 2)
    assert len(stored) == 2


def test_a_clean_stop_leaves_nothing_to_redo(running: Pipeline) -> None:
    sent = build_attempts("stopped", 20)
    running.send([event for events in sent for event in events])
    until(lambda: running.get_attempts("stopped"), lambda stored: len(stored) == 20)
    assert running.processes.stop("worker", grace_seconds=60) == 0
    assert running.count_unacknowledged() == 0


def test_an_index_that_is_killed_and_restarted_meanwhile_gets_everything(running: Pipeline) -> None:
    sent = build_attempts("outage", 30)
    for events in sent[:10]:
        running.send(events)
    running.servers.opensearch.kill()
    for events in sent[10:]:
        running.send(events)
    assert until(lambda: not running.is_index_ready())
    running.servers.opensearch.start()
    assert_each_is_stored_once_as_it_was_sent(running, "outage", sent)
    running.processes.check()


def test_a_broker_that_is_killed_and_restarted_meanwhile_loses_nothing(running: Pipeline) -> None:
    sent = build_attempts("broker", 20)
    for events in sent[:10]:
        running.send(events)
    # Without its end it is published when the worker has waited for that, and then the broker is away.
    running.send(sent[10][:-1])
    running.servers.kafka[0].kill()
    assert until(lambda: re.match(r"waiting for Kafka for \d+ s: .", running.get_readiness()))
    # 0 between two tries, and where the wait has just begun.
    assert until(lambda: running.sum_metric("schedulerlog_worker_waiting_seconds")) > 0
    running.servers.kafka[0].start()
    for events in sent[10:]:
        running.send(events)
    assert_each_is_stored_once_as_it_was_sent(running, "broker", sent)
    assert until(lambda: running.get_readiness() == "ok\n"), running.get_readiness()
    assert running.sum_metric("schedulerlog_worker_waiting_seconds") == 0
    running.processes.check()


def test_who_has_nothing_to_write_shows_that_the_broker_is_away(running: Pipeline) -> None:
    running.settle()
    running.servers.kafka[0].kill()

    def read_readiness() -> tuple[str, str]:
        return running.get_readiness(), running.get_index_readiness()

    assert until(lambda: all(re.match(r"waiting for Kafka for \d+ s: .", text) for text in read_readiness())), (
        read_readiness()
    )
    assert until(lambda: running.sum_metric("schedulerlog_worker_waiting_seconds")) > 0
    running.servers.kafka[0].start()
    assert until(lambda: read_readiness() == ("ok\n", "ok\n")), read_readiness()
    running.processes.check()


def test_garbage_between_good_records_is_dead_lettered_and_they_are_indexed(running: Pipeline) -> None:
    sent = build_attempts("garbage", 2)
    good = [encode(event) for events in sent for event in events]
    garbage = [
        EncodedRecord(b"garbage/pod-0", b"\xff\x00 no json", [("ce_type", b"io.schedulerlog.devices.judged.v1")]),
        EncodedRecord(b"garbage/pod-0", b"[" * 100_000, [("ce_type", b"io.schedulerlog.devices.judged.v1")]),
        EncodedRecord(b"garbage/pod-0", good[0].value[:-9], good[0].headers),
        EncodedRecord(b"garbage/pod-0", b"{}", []),
        EncodedRecord(b"garbage/pod-0", None, good[0].headers),  # type: ignore[arg-type]
        EncodedRecord(b"garbage/pod-0", b"{}", [("ce_type", b"\xff\xfe")]),
        EncodedRecord(b"garbage/pod-0", good[0].value[:-1] + b" " * 1_000_000 + b"]", good[0].headers),
    ]
    mixed = [*good]
    for index, piece in enumerate(garbage):
        mixed.insert(index * 2, piece)
    before = len(running.read_topic("schedulerlog.dead-letters"))
    running.send_records(mixed)
    assert_each_is_stored_once_as_it_was_sent(running, "garbage", sent)
    dead = until(
        lambda: running.read_topic("schedulerlog.dead-letters")[before:], lambda dead: len(dead) == len(garbage), 15
    )
    assert sorted(letter.value or b"" for letter in dead) == sorted(record.value or b"" for record in garbage)
    assert all(dict(letter.headers)["dead_letter_topic"] == b"schedulerlog.decisions" for letter in dead)


def test_dead_letters_are_listed_and_replayed_byte_for_byte(running: Pipeline) -> None:
    broken = EncodedRecord(
        b"mended/pod", b"\x1b[31m{", [("ce_type", b"io.schedulerlog.messages.emitted.v1"), ("own", b"\x00")]
    )
    before = len(running.read_topic("schedulerlog.dead-letters"))
    running.send_records([broken])
    dead = until(lambda: running.read_topic("schedulerlog.dead-letters")[before:], bool)
    listed = running.run_command("dead-letters", "list")
    assert f"{dead[0].offset}  " in listed
    assert "key 'mended/pod'  6 bytes  value: not JSON" in listed
    assert "\x1b" not in listed
    lines = running.run_command("dead-letters", "show", str(dead[0].offset)).splitlines()
    assert lines[0] == "dead_letter_topic: schedulerlog.decisions"
    assert lines[-5:] == [
        "ce_type: io.schedulerlog.messages.emitted.v1", "own: \\x00", "key: mended/pod", "value: 6 bytes", "\\x1b[31m{",
    ]  # fmt: skip
    assert running.run_command("dead-letters", "replay", "--offset", str(dead[0].offset)) == "replayed 1\n"
    again = until(lambda: running.read_topic("schedulerlog.dead-letters")[before:], lambda dead: len(dead) == 2)
    assert [(record.key, record.value, record.headers[len(DEAD_LETTER_HEADERS) :]) for record in again] == [
        (broken.key, broken.value, tuple(broken.headers))
    ] * 2


def test_l11_a_dead_letter_is_replayed_to_no_topic_but_ours(running: Pipeline) -> None:
    """Its headers are believed: who may write dead letters would write to every topic that an operator may."""
    others = [(name, b"" if name == "dead_letter_cut" else b"0") for name in [*DEAD_LETTER_HEADERS][1:]]
    topics = (b"elsewhere", b"\xff\x1b[31m")
    before = len(running.read_topic("schedulerlog.dead-letters"))
    forged = [EncodedRecord(b"key", b"{}", [("dead_letter_topic", topic), *others]) for topic in topics]
    running.send_records(forged, "schedulerlog.dead-letters")
    dead = until(lambda: running.read_topic("schedulerlog.dead-letters")[before:], lambda dead: len(dead) == 2)
    offsets = [str(letter.offset) for letter in dead]
    output = running.run_command("dead-letters", "replay", "--offset", offsets[0], "--offset", offsets[1])
    assert f"skipped: offset {offsets[0]} names the topic 'elsewhere', which is not ours" in output
    assert "\x1b" not in output
    assert output.endswith("replayed 0\n")


def test_a_bind_after_a_restart_finds_its_attempt(running: Pipeline) -> None:
    (events,) = build_attempts("late", 1)
    running.send(events[:-1])
    until(lambda: running.get_attempts("late"), bool)
    running.settle()  # so that the attempt is acknowledged, and no record of it is read again
    running.processes.kill("worker")
    running.start()
    running.send(events[-1:])
    assert_each_is_stored_once_as_it_was_sent(running, "late", [events])


def test_an_attempt_without_an_end_is_stored_as_incomplete_and_completed_by_late_records(running: Pipeline) -> None:
    (events,) = build_attempts("half", 1, bound=False)
    running.send(events[:-1])
    (document,) = until(lambda: running.get_attempts("half"), bool).values()
    assert (document["complete"], document["status"]) == (False, "pending")
    running.send(events[-1:])
    assert_each_is_stored_once_as_it_was_sent(running, "half", [events])


def test_a_producer_that_sends_everything_twice_changes_nothing(running: Pipeline) -> None:
    sent = build_attempts("twice", 10)
    running.send([event for events in sent for event in events for _ in range(2)])
    assert_each_is_stored_once_as_it_was_sent(running, "twice", sent)
    ids = [event.id for event in read_messages(running, "twice")]
    assert len(ids) == len(set(ids))


def test_two_workers_share_the_partitions_and_one_takes_over(running: Pipeline) -> None:
    second = Pipeline(running.servers, running.processes, 0)
    second.start("second", "--instance-id", f"second-{uuid.uuid4().hex[:6]}")
    sent = build_attempts("shared", 40)
    for events in sent[:20]:
        running.send(events)
    running.processes.stop("second")
    for events in sent[20:]:
        running.send(events)
    assert_each_is_stored_once_as_it_was_sent(running, "shared", sent)


def test_an_index_writer_without_templates_names_the_command_to_run_and_ends(running: Pipeline) -> None:
    running.processes.stop("index")
    url = running.servers.opensearch_url
    httpx.delete(f"{url}/_index_template/schedulerlog-attempts", timeout=10)
    running.start_index()
    log = running.processes.log("index")
    line = "OpenSearch has no index template schedulerlog-attempts: run `schedulerlog pipeline provision`"
    assert line in until(log.read_text, lambda text: line in text)
    running.processes.run("provision", "pipeline", "provision")


def test_a_worker_whose_state_has_too_few_partitions_names_the_command_to_run_which_adds_them(
    running: Pipeline,
) -> None:
    running.processes.stop("worker")
    running.recreate_topic("schedulerlog.pod-histories", partitions=3, configuration={})
    running.start()
    log = running.processes.log("worker")
    line = (
        "Kafka's topic schedulerlog.pod-histories has 3 partitions and schedulerlog.decisions has 12: "
        "run `schedulerlog pipeline provision`"
    )
    assert line in until(log.read_text, lambda text: line in text)
    assert until(lambda: not running.processes.is_running("worker"))
    running.processes.run("provision", "pipeline", "provision")
    running.start()
    running.wait_ready()


def test_provisioning_again_corrects_what_differs(running: Pipeline) -> None:
    running.processes.run("provision", "pipeline", "provision")
    output = running.processes.log("provision").read_text().splitlines()[-len(TOPICS) - len(INDICES) :]
    assert sum("as it should be" in line for line in output) == len(TOPICS)
    assert sum("written again" in line for line in output) == len(INDICES)


def test_provisioning_corrects_a_topic_that_somebody_made_by_hand(running: Pipeline) -> None:
    running.recreate_topic("schedulerlog.nodes", partitions=3, configuration={"retention.ms": "1000"})
    running.processes.run("provision", "pipeline", "provision")
    output = running.processes.log("provision").read_text()
    assert "topic schedulerlog.nodes: 3 partitions are now 12" in output
    assert "retention.ms was 1000, is now 604800000" in output
    running.processes.run("provision", "pipeline", "provision")
    assert "topic schedulerlog.nodes: as it should be" in running.processes.log("provision").read_text()


def test_provisioning_where_no_service_answers_names_the_address() -> None:
    environment = {
        "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
        "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "provision", "--wait", "1"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Kafka at 127.0.0.1:9: ")


def test_a_metrics_address_in_use_is_named(running: Pipeline) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "worker", "--metrics-address", str(running.port)],
        env=running.servers.environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"--metrics-address: can't listen on 127.0.0.1:{running.port}: Address already in use" in done.stderr


def test_m10_h4_records_that_unpack_to_much_cost_dead_letters_and_their_neighbours_are_indexed(
    running: Pipeline,
) -> None:
    sent = build_attempts("bombs", 6)
    before = len(running.read_topic("schedulerlog.dead-letters"))
    running.send([event for events in sent[:3] for event in events])
    key, _, headers, *_ = encode(sent[0][0])
    # 12 kB on the topic, and a record below the bound of batches that is longer than a dead letter may be.
    for size in (200_000_000, 12_000_000):
        running.send_records(
            [EncodedRecord(key, bytes(size), headers)], compression_type="zstd", max_request_size=2**29
        )
    running.send([event for events in sent[3:] for event in events])
    assert_each_is_stored_once_as_it_was_sent(running, "bombs", sent)
    letters = until(lambda: running.read_topic("schedulerlog.dead-letters")[before:], lambda records: len(records) == 2)
    assert {dict(letter.headers)["dead_letter_cut"] for letter in letters} == {
        b"the batch of records was not unpacked",
        b"the value had 12000000 bytes, these are the first 65536",
    }
    assert running.sum_metric("schedulerlog_worker_is_waiting") == 0
    assert running.get_peak_memory_bytes("worker") < 350_000_000


def test_m5_a_summary_that_is_too_large_for_kafka_is_a_dead_letter_and_its_neighbours_are_indexed(
    running: Pipeline,
) -> None:
    sent = build_attempts("large", 4)
    *_, end = an_attempt(DEVICES, **build_common("enormous", "large"))
    assert isinstance(end, AttemptConcluded)
    request_bytes = len(encode_value([Request(container="c" * 250)] * 2)) - len(
        encode_value([Request(container="c" * 250)])
    )
    # As long as the decisions take it; the summary is longer than the record that it is made of.
    large = end.model_copy(update={"requests": [Request(container="c" * 250)] * (1_040_000 // request_bytes)})
    before = len(running.read_topic("schedulerlog.dead-letters"))
    running.send([event for events in sent[:2] for event in events])
    running.send_records([encode(large)], compression_type="zstd", max_request_size=2**21)
    running.send([event for events in sent[2:] for event in events])
    assert_each_is_stored_once_as_it_was_sent(running, "large", sent)
    (letter,) = until(
        lambda: running.read_topic("schedulerlog.dead-letters")[before:], lambda records: len(records) == 1
    )
    why = dict(letter.headers)
    assert why["dead_letter_topic"] == b"schedulerlog.attempts"
    assert b"are more than schedulerlog.attempts takes" in why["dead_letter_cause"]
    assert running.sum_metric("schedulerlog_worker_oversize_records") == 1
