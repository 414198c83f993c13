"""The next batch gathers while one is written; nothing is committed before it is written."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

import pytest

from pipeline.index.batch_builder import DocumentBatchBuilder
from pipeline.index.index_writer import IndexWriter
from pipeline.index.process import TopicsReader
from pipeline.index.summary_parts import SummaryParts
from pipeline.metrics import IndexWriterMetrics
from pipeline.sinks.bulk import Document, WriteResult
from runtime.errors import NotProvisionedError
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.record import Record
from schemas import indices
from schemas.documents.devices import DevicesJudgedHead
from schemas.topics import ATTEMPTS
from tests.support.builders.events import a_summary
from tests.support.builders.summary_parts import build_parts
from tests.support.fakes.documents_and_records import DocumentsByVersion, TopicLog
from tests.support.fakes.index_and_topics import FakeTopics

PARTITION = TopicPartition(ATTEMPTS.name, 0)


class Consumer:
    """Gives the records of a log, at most ``at_once``; at its end it waits for ``more``."""

    def __init__(self, log: TopicLog, at_once: int = 100) -> None:
        self.log, self.at_once = log, at_once
        self.position = 0
        self.commits: list[int] = []
        self.is_at_end = False
        self.more = asyncio.Event()

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Record]]:
        records = self.log.records[self.position :][: min(self.at_once, max_records)]
        if not records and timeout_ms:
            self.is_at_end = True
            await self.more.wait()
            self.is_at_end = False
            self.more.clear()
            return {}
        self.position += len(records)
        return {PARTITION: records} if records else {}

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        assert offsets, "the client refuses to commit nothing"
        self.commits.append(offsets[PARTITION])


class SlowIndex(DocumentsByVersion):
    """Answers a write when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Semaphore(0)
        self.may_end = asyncio.Semaphore(0)
        self.failure: Exception | None = None

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        self.started.release()
        await self.may_end.acquire()
        if self.failure:
            raise self.failure
        return await super().write(documents)


def a_log(attempts: int) -> TopicLog:
    log = TopicLog()
    log.append(*(a_summary(attempt_id=f"{number:032}") for number in range(attempts)))
    return log


class NoReferences:
    def refer(self, event: DevicesJudgedHead) -> None: ...
    def clear(self) -> None: ...


class Running:
    """A reader at work on a log, with an index that is slow."""

    def __init__(self, log: TopicLog, max_documents: int = 10, at_once: int = 1) -> None:
        self.index, self.consumer = SlowIndex(), Consumer(log, at_once)
        self.builder = DocumentBatchBuilder(SummaryParts(), max_documents, 1_000_000)
        self.reader = TopicsReader(
            self.builder, IndexWriter(self.index, FakeTopics(), IndexWriterMetrics()), NoReferences(), 0.0
        )

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.reader.work(self.consumer))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - what it waits for has no event
                await asyncio.sleep(0)


async def test_while_a_batch_is_written_the_next_one_gathers_up_to_its_bound() -> None:
    async with Running(a_log(25)) as running:
        await running.index.started.acquire()
        await running.until(lambda: running.consumer.position == 1 + 10)
        assert running.consumer.commits == []
        assert running.reader.behind_seconds > 0
        running.index.may_end.release()
        await running.index.started.acquire()
        assert running.consumer.commits == [1]
        await running.until(lambda: running.consumer.position == 1 + 10 + 10)
        assert running.index.writes == [2]
        running.index.may_end.release()
        await running.index.started.acquire()
        await running.until(lambda: running.consumer.position == 25)
        for _ in range(2):
            running.index.may_end.release()
        await running.until(lambda: running.consumer.commits == [1, 11, 21, 25])
        assert running.index.writes == [2, 11, 11, 5], "with the state of the pod, which all are about"
        assert running.reader.behind_seconds == 0


async def test_nothing_is_committed_of_a_write_that_was_cut_off() -> None:
    async with Running(a_log(3)) as running:
        await running.index.started.acquire()
    assert (running.consumer.commits, running.index.documents) == ([], {})


async def test_an_error_that_waiting_does_not_cure_ends_the_reading() -> None:
    running = Running(a_log(3))
    running.index.failure = NotProvisionedError("no template")
    running.index.may_end.release()
    with pytest.raises(NotProvisionedError):
        await running.reader.work(running.consumer)
    assert running.consumer.commits == []


async def test_what_was_gathered_before_partitions_moved_is_not_committed() -> None:
    """The new owner of the partition begins where this process has committed: it reads all parts of the summary."""
    log = TopicLog()
    log.append(a_summary(), build_parts(2, attempt_id="1e" * 16)[0])
    async with Running(log) as running:
        await running.index.started.acquire()
        await running.until(lambda: running.consumer.position == 2)
        running.builder.forget()
        running.index.may_end.release()
        await running.until(lambda: running.consumer.commits == [1])
        log.append(a_summary(attempt_id="2e" * 16))
        running.consumer.position = 1
        running.index.may_end.release()
        running.consumer.more.set()
        await running.until(lambda: running.consumer.commits == [1, 1])


async def test_of_records_that_were_fetched_before_partitions_moved_none_is_added_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of them are forgotten: to commit behind the others would lose them."""
    monkeypatch.setattr("pipeline.index.process._SLICE_SECONDS", 0.0)
    async with Running(a_log(5), at_once=5) as running:
        await running.until(lambda: not running.builder.is_empty)
        assert running.consumer.position == 5
        running.reader.forget()
        await running.until(lambda: running.consumer.is_at_end)
        running.consumer.position = 0
        running.index.may_end.release()
        running.consumer.more.set()
        await running.until(lambda: bool(running.consumer.commits))
    assert running.consumer.commits == [5]
    assert len(running.index.documents) == 5 + 1, "and the state of their pod"


async def test_a_part_alone_is_read_and_its_offset_is_not_committed() -> None:
    log, (first, second) = TopicLog(), build_parts(2)
    log.append(first)
    async with Running(log) as running:
        running.index.may_end.release()
        await running.until(lambda: running.consumer.commits == [0])
        log.append(second)
        running.index.may_end.release()
        running.consumer.more.set()
        await running.until(lambda: running.consumer.commits == [0, 2])
    document = next(
        source for (name, _), source in running.index.documents.items() if name.startswith(indices.ATTEMPTS.alias)
    )
    assert document["nodes"] == ["node0", "node1"]
