"""The agent and the writers on fakes: what is written, what is acknowledged, and what a restart changes (nothing)."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.record import Record
from pipeline.dead_letters.codec import original
from pipeline.sinks.bulk import Document
from pipeline.sinks.bulk_result import WriteResult
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.metrics import Metrics
from pipeline.worker.writer_pool import WriterPool
from pipeline.worker.writes import WriterPolicy
from schemas.codec.records import decode
from schemas.events import AttemptConcluded, AttemptEvent, DevicesJudged, FindingReported, PodObserved, PodRef
from schemas.topics import ATTEMPTS, DEAD_LETTER_HEADERS, DEAD_LETTERS, FINDINGS, MESSAGES
from tests.support.builders.attempts import STARTED, a_bind, about, an_attempt
from tests.support.fakes.index_and_topics import FakeIndex, FakeTopics, Log, stream
from tests.support.harness.worker_in_memory import Worker, a_worker
from tests.support.stress import examples

REFUSING = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}


def lines(topics: FakeTopics) -> list[str]:
    events = [decode(each.record.value, each.record.headers) for each in topics.of(MESSAGES.name)]
    return [event.message for event in events]  # type: ignore[union-attr]


async def test_an_attempt_becomes_a_document_a_summary_and_messages_and_is_acknowledged() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    (document,) = index.attempts.values()
    assert (document["status"], document["nodes"]) == ("failed", ["node1", "node2"])
    assert len(topics.of(ATTEMPTS.name)) == 1
    assert lines(topics)[-1] == "no available node, 2 nodes do not meet"
    assert log.acknowledged == [record.offset for record in log.records]
    assert {key for key in index.documents if "/" in key} == {about()["attempt_id"] + "/devices/0"}


async def test_nothing_is_acknowledged_before_it_is_written() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    worker = Worker(index, topics)
    await worker.decisions.fold(stream(log.records))
    assert log.acknowledged == []


async def test_an_open_attempt_holds_back_the_acknowledgement_but_nothing_else() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(an_attempt(REFUSING, **about("open"))[0], *an_attempt(REFUSING))
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
        assert len(index.attempts) == 1
        assert log.acknowledged == []
        await worker.wait(31)
        assert len(index.attempts) == 2
        assert log.acknowledged == [0, 1, 2, 3]


async def test_a_record_that_cant_be_decoded_is_dead_lettered_byte_for_byte_and_the_others_are_folded() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log(partition=7)
    good = an_attempt(REFUSING)
    log.append(good[0])
    log.append_bytes(None, b"\xff{", [("ce_type", b"io.schedulerlog.nodes.judged.v1"), ("mine", b"\x00")])
    log.append(*good[1:])
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    (dead,) = topics.of(DEAD_LETTERS.name)
    assert dead.record.value == b"\xff{"
    assert dead.record.headers[5:] == list(log.records[1].headers)
    headers = dict(dead.record.headers)
    assert [headers[name] for name in list(DEAD_LETTER_HEADERS)[:3]] == [b"schedulerlog.decisions", b"7", b"1"]
    assert headers["dead_letter_cause"].startswith(b"value: not JSON")
    assert len(index.attempts) == 1
    assert log.acknowledged == [0, 1, 2, 3]


async def test_a_dead_letter_can_be_replayed_byte_for_byte() -> None:
    topics, log = FakeTopics(), Log()
    record = log.append_bytes(b"ml/trainer", b"broken", [("ce_type", b"x"), ("ce_type", b"y")])
    async with a_worker(FakeIndex(), topics) as worker:
        await worker.read(record)
    dead = topics.sent[0].record
    topic, again = original(Record(DEAD_LETTERS.name, 0, 3, dead.key, dead.value, dead.headers, lambda: None))
    assert (topic, again) == ("schedulerlog.decisions", (record.key, record.value, list(record.headers)))


async def test_events_that_the_fold_does_not_use_are_acknowledged() -> None:
    log = Log()
    log.append(PodObserved(pod=PodRef(namespace="a", name="b"), observed_at=STARTED, phase="Pending"))
    async with a_worker(FakeIndex(), FakeTopics()) as worker:
        await worker.read(*log.records)
    assert log.acknowledged == [0]


async def test_a_document_that_the_index_refuses_is_dead_lettered_with_the_cause() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    index.refused.add(about()["attempt_id"] + "/devices/0")
    log.append(*an_attempt(REFUSING))
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    (dead,) = topics.of(DEAD_LETTERS.name)
    assert dead.record.value == log.records[0].value
    assert b"mapper_parsing_exception" in dict(dead.record.headers)["dead_letter_cause"]
    assert log.acknowledged == [0, 1, 2]


async def test_a_bind_writes_the_attempt_again_and_publishes_only_its_own_message() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*an_attempt({"node1": [["picked"]]}, chosen="node1"), a_bind())
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records[:-1])
        assert next(iter(index.attempts.values()))["status"] == "pending"
        await worker.read(log.records[-1])
    assert next(iter(index.attempts.values()))["status"] == "succeeded"
    assert len(lines(topics)) == 2
    assert log.acknowledged == [0, 1, 2, 3]


async def test_a_bind_after_a_restart_finds_its_attempt_in_the_index() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*an_attempt({"node1": [["picked"]]}, chosen="node1"), a_bind())
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records[:-1])
    async with a_worker(index, topics) as worker:
        await worker.read(log.records[-1])
    (document,) = index.attempts.values()
    assert (document["status"], document["nodes"], document["complete"]) == ("succeeded", ["node1"], True)
    assert lines(topics)[1:] == ["Successfully binding node [node1] to ml/trainer"]


async def test_a_bind_of_an_unknown_attempt_is_written_by_itself() -> None:
    index, log = FakeIndex(), Log()
    log.append(a_bind(bound=False))
    async with a_worker(index, FakeTopics()) as worker:
        await worker.read(*log.records)
    (document,) = index.attempts.values()
    assert (document["status"], document["complete"], document["bound"]) == ("failed", False, False)


async def test_a_filter_that_comes_after_its_bind_and_a_restart_is_merged_with_it() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(a_bind(), *an_attempt({"node1": [["picked"]]}, chosen="node1"))
    async with a_worker(index, topics) as worker:
        await worker.read(log.records[0])
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records[1:])
    (document,) = index.attempts.values()
    assert (document["status"], document["nodes"], document["complete"]) == ("succeeded", ["node1"], True)


async def test_the_missing_records_of_an_attempt_that_expired_complete_it() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records[:2])
        await worker.wait(31)
        assert not next(iter(index.attempts.values()))["complete"]
        await worker.read(log.records[2])
    (document,) = index.attempts.values()
    assert (document["complete"], document["status"]) == (True, "failed")


async def test_a_summary_of_fewer_records_after_a_restart_leaves_the_fuller_one_as_it_is() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    before, sent = dict(index.documents), set(map(str, topics.sent))
    async with a_worker(index, topics) as worker:
        await worker.read(log.records[1])
        await worker.wait(31)
    assert index.documents == before
    assert set(map(str, topics.sent)) == sent


async def test_a_producer_that_sends_everything_twice_changes_nothing() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    for event in [*an_attempt({"node1": [["picked"]]}, chosen="node1"), a_bind()]:
        log.append(event, event)
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
        assert worker.decisions.open_attempts == 0
    assert len(lines(topics)) == 2
    assert len(index.attempts) == 1
    assert log.acknowledged == list(range(8))


async def test_after_a_rebalance_no_record_of_a_revoked_partition_is_acknowledged() -> None:
    index, log = FakeIndex(), Log()
    log.append(*an_attempt(REFUSING))
    worker = Worker(index, FakeTopics())
    await worker.decisions.fold(stream(log.records))
    worker.decisions.forget()
    running = asyncio.create_task(worker.writers.run())
    await worker.writers.drained()
    running.cancel()
    assert len(index.attempts) == 1
    assert log.acknowledged == []


async def test_a_record_that_is_read_again_while_it_is_pending_counts_once() -> None:
    index, log = FakeIndex(), Log()
    log.append(*an_attempt(REFUSING))
    worker = Worker(index, FakeTopics())
    await worker.decisions.fold(stream([*log.records, *log.records]))
    assert log.acknowledged == []
    running = asyncio.create_task(worker.writers.run())
    await worker.writers.drained()
    running.cancel()
    assert log.acknowledged == [0, 1, 2]


async def test_reading_pauses_while_the_queue_is_full() -> None:
    index, log = FakeIndex(), Log()
    for number in range(20):
        log.append(*an_attempt(REFUSING, **about(f"pod-{number}")))
    worker = Worker(index, FakeTopics(), queue_bytes=10_000)
    reading = asyncio.create_task(worker.decisions.fold(stream(log.records)))
    for _ in range(1_000):  # in a tenth of these turns it would have read everything
        await asyncio.sleep(0)
    assert not reading.done()
    assert worker.writers.queued_bytes <= 10_000
    running = asyncio.create_task(worker.writers.run())
    await reading
    await worker.writers.drained()
    running.cancel()
    assert len(index.attempts) == 20


class SlowIndex(FakeIndex):
    """Writes nothing of the pods ``blocked`` until ``released`` is set."""

    def __init__(self, *blocked: str) -> None:
        super().__init__()
        self._blocked = blocked
        self.released = asyncio.Event()

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        if any(pod.encode() in each.source for pod in self._blocked for each in documents):
            await self.released.wait()
        return await super().write(documents)


async def test_partitions_of_another_writer_are_written_while_one_batch_is_under_way() -> None:
    index, logs = SlowIndex("pod-0"), [Log(0), Log(1)]
    for number, log in enumerate(logs):
        log.append(*an_attempt(REFUSING, **about(f"pod-{number}")))
    async with a_worker(index, FakeTopics()) as worker:
        await worker.decisions.fold(stream([*logs[0].records, *logs[1].records]))
        await asyncio.wait_for(worker.writers.of(1).drained(), 5)
        assert [log.acknowledged for log in logs] == [[], [0, 1, 2]]
        index.released.set()
        await worker.writers.drained()
    assert logs[0].acknowledged == [0, 1, 2]


async def test_a_defect_of_the_fold_dead_letters_the_record_instead_of_ending_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    monkeypatch.setattr("pipeline.worker.open_attempts.AttemptFold.add", broken)
    async with a_worker(FakeIndex(), topics) as worker:
        await worker.read(*log.records)
    assert len(topics.of(DEAD_LETTERS.name)) == 3
    assert log.acknowledged == [0, 1, 2]


def contents(index: FakeIndex) -> dict[str, dict[str, Any]]:
    """All documents but rows of 0 attempts: those counted a version of an attempt that a later one corrected."""
    return {name: each for name, each in index.documents.items() if each.get("attempts") != 0}


def partitioned(events: list[AttemptEvent], partitions: int = 3) -> list[Log]:
    """The events as logs of partitions; all of a pod in one of them."""
    logs = [Log(number) for number in range(partitions)]
    pods = list(dict.fromkeys(event.pod for event in events))
    for event in events:
        logs[pods.index(event.pod) % partitions].append(event)
    return logs


async def written_undisturbed(logs: list[Log]) -> FakeIndex:
    index = FakeIndex()
    async with a_worker(index, FakeTopics()) as worker:
        await worker.read(*(record for log in logs for record in log.records))
    return index


@given(st.integers(0, 2**32))
@settings(max_examples=examples(10))
def test_crashes_at_any_record_end_in_the_same_documents(seed: int) -> None:
    """A crash keeps the index, the topics and what was acknowledged; everything else is read again."""
    asyncio.run(_crashes(random.Random(seed)))


async def _crashes(chance: random.Random) -> None:
    events: list[AttemptEvent] = []
    for number in range(4):
        common = about(f"pod-{number}")
        events += [*an_attempt({"node1": [["picked"]]}, chosen="node1", **common), a_bind(**common)]
    expected = await written_undisturbed(partitioned(events))
    index, topics, logs = FakeIndex(), FakeTopics(), partitioned(events)
    while any(len(log.acknowledged) < len(log.records) for log in logs):
        async with a_worker(index, topics) as worker:
            await worker.decisions.fold(stream(mixed(chance, *(some_of_the_rest(chance, log) for log in logs))))
            if chance.random() < 0.7:
                await worker.writers.drained()
    assert [log.acknowledged for log in logs] == [list(range(len(log.records))) for log in logs]
    assert contents(index) == contents(expected)


def some_of_the_rest(chance: random.Random, log: Log) -> list[Record]:
    rest = log.records[len(log.acknowledged) :]
    return rest if chance.random() < 0.3 else rest[: chance.randint(min(1, len(rest)), len(rest))]


def mixed(chance: random.Random, *lists: list[Record]) -> list[Record]:
    """One list that keeps the order of each."""
    order = [number for number, records in enumerate(lists) for _ in records]
    chance.shuffle(order)
    sources = [iter(records) for records in lists]
    return [next(sources[number]) for number in order]


async def test_without_stored_devices_only_summaries_are_written() -> None:
    index, log = FakeIndex(), Log()
    log.append(*an_attempt(REFUSING))
    writers = WriterPool(index, [FakeTopics()], Metrics(), WriterPolicy(linger_seconds=0))
    running = asyncio.create_task(writers.run())
    await DecisionsAgent(writers, Metrics(), store_devices=False).fold(stream(log.records))
    await writers.drained()
    running.cancel()
    assert list(index.attempts) == [about()["attempt_id"]]
    assert not index.of("schedulerlog-devices")


async def test_the_version_and_the_day_of_a_document_are_those_of_its_attempt() -> None:
    index, log = FakeIndex(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(index, FakeTopics()) as worker:
        await worker.read(*log.records)
    events = [decode(record.value, record.headers) for record in log.records]
    end = next(event for event in events if isinstance(event, AttemptConcluded))
    assert datetime.fromtimestamp((index.versions[end.attempt_id] or 0) / 1e6, UTC) >= end.ended_at
    assert any(isinstance(event, DevicesJudged) for event in events)


async def test_a_finding_of_a_log_reader_is_forwarded_and_one_of_the_pipeline_added() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    reported = FindingReported(
        **about(), finding="ReleasingMemoryCounted", found_at=STARTED, node="node1", device="grp-0"
    )
    log.append(reported, *an_attempt(REFUSING)[1:])
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
        await worker.wait(31)
    names = {each["finding"]: name for name, each in index.documents.items() if "/finding/" in name}
    assert names["ReleasingMemoryCounted"] == reported.id
    assert names.keys() == {"ReleasingMemoryCounted", "Imbalance"}
    assert len(topics.of(FINDINGS.name)) == 2
    assert log.acknowledged == [0, 1, 2]


async def test_the_ids_of_complete_attempts_are_forgotten_after_a_while() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    first = an_attempt(REFUSING, **about("pod-0"))
    async with a_worker(index, topics) as worker:
        for number in range(40):
            start = len(log.records)
            log.append(*(an_attempt(REFUSING, **about(f"pod-{number}")) if number else first))
            await worker.read(*log.records[start:])
            await worker.wait(60)
        (partition,) = worker.decisions._partitions.values()
        assert len(partition.attempts._complete) <= 12
        written, start = dict(index.documents), len(log.records)
        log.append(*first)
        await worker.read(*log.records[start:])
    assert index.documents == written
    assert log.acknowledged == [record.offset for record in log.records]
