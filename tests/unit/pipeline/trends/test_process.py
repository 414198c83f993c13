"""Partitions move between trend counters: none reads again what it knows, and none counts what it has lost."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from pipeline.metrics import TrendsMetrics
from pipeline.trends.process import TrendCounter
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.record import Record
from schemas.codec.records import EncodedRecord, decode, encode
from schemas.events import PodRef, TrendsCounted
from schemas.topics import ATTEMPT_COUNTS, DEAD_LETTERS, TRENDS
from tests.support.builders.events import STARTED, an_attempt_counted
from tests.support.fakes.index_and_topics import FakeTopics

FIRST, SECOND = (TopicPartition(ATTEMPT_COUNTS.name, number) for number in range(2))


class FakeConsumer:
    """Gives ``batches`` one after another, as the client would, then nothing; ends the reader when ``is_over``."""

    def __init__(self, *batches: dict[TopicPartition, list[Record]]) -> None:
        self.batches = list(batches)
        self.assigned = {FIRST, SECOND}
        self.sought: list[tuple[TopicPartition, int]] = []
        self.committed_is_asked = asyncio.Event()
        self.committed_is_known = asyncio.Event()
        self.committed_is_known.set()

    def assignment(self) -> set[TopicPartition]:
        return self.assigned

    async def getmany(self, **_: object) -> dict[TopicPartition, list[Record]]:
        if not self.batches:
            raise EOFError
        return self.batches.pop(0)

    async def committed(self, _: TopicPartition) -> None:
        self.committed_is_asked.set()
        await self.committed_is_known.wait()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought.append((partition, offset))


def build_records(partition: TopicPartition, offsets: Sequence[int], value: bytes | None = None) -> list[Record]:
    records = []
    for offset in offsets:
        pod = PodRef(namespace="ml", name=f"pod-{offset}", uid=f"uid-{offset}")
        key, encoded, headers, *_ = encode(an_attempt_counted(attempt_id=f"attempt-{offset}", pod=pod))
        position = (partition.topic, partition.partition, offset)
        timestamp = int(STARTED.timestamp() * 1000)
        records.append(Record(*position, key, value or encoded, headers, timestamp, lambda: None))
    return records


def a_counter(consumer: FakeConsumer, topics: FakeTopics) -> TrendCounter:
    sink: Any = topics
    return TrendCounter(consumer, sink, TrendsMetrics(CollectorRegistry()), publish_seconds=0)


async def work(counter: TrendCounter) -> None:
    with pytest.raises(EOFError):
        await counter.work()


def list_counts(sent: Sequence[EncodedRecord]) -> list[tuple[int, int]]:
    """List partition and number of attempts of each record of trends."""
    events = [decode(entry.value, entry.headers) for entry in sent if entry.topic == TRENDS.name]
    return [(event.partition, int(event.attempts[0])) for event in events if isinstance(event, TrendsCounted)]


async def test_a_partition_that_is_still_there_after_a_rebalance_continues_and_one_that_is_gone_is_forgotten() -> None:
    consumer, topics = (
        FakeConsumer({FIRST: build_records(FIRST, range(3)), SECOND: build_records(SECOND, range(5))}),
        FakeTopics(),
    )
    counter = a_counter(consumer, topics)
    await work(counter)
    consumer.assigned = {FIRST}
    counter.on_reassigned()
    assert (consumer.sought, counter.attempts) == ([(FIRST, 3)], 3)
    consumer.batches = [{FIRST: build_records(FIRST, range(3, 4))}]
    await work(counter)
    # The partition that has come back is read again from its committed offset.
    consumer.assigned = {FIRST, SECOND}
    counter.on_reassigned()
    consumer.batches = [{SECOND: build_records(SECOND, range(6))}]
    await work(counter)
    assert list_counts(topics.sent) == [(0, 3), (1, 5), (0, 4), (1, 6)]


async def test_records_of_before_a_rebalance_are_not_counted_after_it() -> None:
    consumer, topics = (
        FakeConsumer({FIRST: build_records(FIRST, range(3)), SECOND: build_records(SECOND, range(2))}),
        FakeTopics(),
    )
    counter = a_counter(consumer, topics)
    consumer.committed_is_known.clear()
    working = asyncio.create_task(work(counter))
    await consumer.committed_is_asked.wait()
    consumer.assigned = {FIRST}
    counter.on_reassigned()
    consumer.batches.append({FIRST: build_records(FIRST, range(1))})
    consumer.committed_is_known.set()
    await working
    assert list_counts(topics.sent) == [(0, 1)]


async def test_what_cant_be_read_is_a_dead_letter_and_its_neighbours_are_counted() -> None:
    broken = [
        *build_records(FIRST, range(1)),
        *build_records(FIRST, range(1, 2), b"{"),
        *build_records(FIRST, range(2, 3)),
    ]
    consumer, topics = FakeConsumer({FIRST: broken}), FakeTopics()
    await work(a_counter(consumer, topics))
    assert [letter.value for letter in topics.list_sent(DEAD_LETTERS.name)] == [b"{"]
    assert list_counts(topics.sent) == [(0, 2)]
