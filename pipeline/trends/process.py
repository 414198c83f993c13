"""The trend counter as a task: reads attempt counts, publishes the rows that they change, commits.

Its own consumer group shares the partitions between the processes that run it. What is committed lies behind what is
published: the next owner of a partition reads what it has to remember, and the open window, again (see
``partition_counts``).
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pipeline.dead_letter import DeadLetterLog, to_dead_letter
from pipeline.metrics import TrendsMetrics
from pipeline.settings import WorkerSettings
from pipeline.sinks.kafka import create_topics_sink
from pipeline.trends.partition_counts import PartitionCounts
from runtime.kafka.consumer import (
    Connection,
    TopicPartition,
    commit_until,
    connected,
    create_consumer,
    keep_reconnecting,
    on_assignment,
)
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import Record, record_time, to_record
from runtime.kafka.topics import list_topic_names, require
from schemas.codec.records import EncodedRecord, Rejected, decode, encode
from schemas.events import AttemptCounted
from schemas.topics import ATTEMPT_COUNTS, DEAD_LETTERS, TRENDS

logger = logging.getLogger(__name__)

GROUP: Final = "schedulerlog-trends"
MAX_RECORDS: Final = 50
"""Records of one turn, about 3 ms: the task shares its event loop with the worker."""
PAUSE_SECONDS: Final = 0.005
"""Between two turns: what is read again after a restart, 100,000 attempts and more, takes a third of the processor at
most, and leaves the rest to the worker's decisions."""
_FETCH_BYTES: Final = 256 * 1024
"""Size of a fetch from one partition, about 500 records."""
_POLL_MS: Final = 200
_LONGEST_PUBLISH_SECONDS: Final = 3_600
"""Rows may wait this long for the broker before the group gives the partitions to another process."""


async def run(settings: WorkerSettings, metrics: TrendsMetrics) -> None:
    """Count until cancelled, over broken connections. Raises ``NotProvisionedError`` if topics are missing."""
    longest_pause = settings.max_backoff_seconds
    topics = create_topics_sink(settings, metrics.topics, longest_pause)
    connection = Connection(longest_pause)

    async def run_session() -> None:
        require([ATTEMPT_COUNTS.name, TRENDS.name, DEAD_LETTERS.name], await list_topic_names(settings))
        consumer = create_consumer(
            settings,
            group=GROUP,
            session_seconds=settings.session_seconds,
            max_poll_interval_ms=_LONGEST_PUBLISH_SECONDS * 1000,
            max_partition_fetch_bytes=_FETCH_BYTES,
        )
        counter = TrendCounter(consumer, topics, metrics, settings.count_interval.total_seconds())
        metrics.watch_attempts(lambda: counter.attempts)
        consumer.subscribe([ATTEMPT_COUNTS.name], listener=on_assignment(counter.on_reassigned))
        async with connected(consumer):
            connection.note_contact()
            await counter.work()

    try:
        await keep_reconnecting(run_session, connection)
    finally:
        await topics.close()


class TrendCounter:
    """Counter of the partitions that one consumer has."""

    def __init__(self, consumer: Any, topics: TopicsSink, metrics: TrendsMetrics, publish_seconds: float) -> None:
        self._consumer, self._topics, self._metrics = consumer, topics, metrics
        self._publish_seconds, self._published_at = publish_seconds, time.monotonic()
        self._counts: dict[TopicPartition, PartitionCounts] = {}
        self._next_offsets: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int | None] = {}
        self._assignments = 0
        self._dead_letter_log = DeadLetterLog(logger)

    @property
    def attempts(self) -> int:
        """Number of attempts in memory."""
        return sum(map(len, self._counts.values()))

    def on_reassigned(self) -> None:
        """Continue with the partitions that are still assigned; called before anything is read of the new
        assignment."""
        self._assignments += 1
        assigned = self._consumer.assignment()
        self._counts = {partition: counts for partition, counts in self._counts.items() if partition in assigned}
        for partition in self._counts:
            # Counts follow from the records alone, so they are right whichever process had the partition meanwhile.
            # The client would begin with the committed offset, and every rebalance would read ten minutes and more
            # again.
            self._consumer.seek(partition, self._next_offsets[partition])

    async def work(self) -> None:
        """Count and publish until cancelled. Raises ``KafkaError``."""
        while True:
            batches = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=MAX_RECORDS)
            if await self._open(batches):
                await self._topics.send(self._count(batches))
            if time.monotonic() - self._published_at >= self._publish_seconds:
                await self._publish()
            # A fetch of many records is handed out without waiting.
            await asyncio.sleep(PAUSE_SECONDS)

    async def _open(self, batches: Mapping[TopicPartition, object]) -> bool:
        """Begin with partitions that are new here. False if the group has reassigned partitions meanwhile: the records
        are read again then."""
        assignments = self._assignments
        # In the order of what was read: rows of one publication are then in the same order in every process.
        new = [partition for partition in batches if partition not in self._counts]
        committed = {partition: await self._consumer.committed(partition) for partition in new}
        if assignments != self._assignments:
            return False
        self._committed |= committed
        self._counts |= {key: PartitionCounts(key.partition, offset) for key, offset in committed.items()}
        return True

    def _count(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> list[EncodedRecord]:
        """Count the records; return the dead letters of the broken ones."""
        dead_letters: list[EncodedRecord] = []
        for partition, records in batches.items():
            for record in map(to_record, records):
                event = decode(record.value, record.headers)
                if isinstance(event, AttemptCounted):
                    # Not after the record itself: a clock of a broker that was ahead would keep one window open.
                    recorded_at = min(event.recorded_at, record_time(record))
                    is_new = self._counts[partition].put(record.offset, recorded_at, event)
                    self._metrics.records.labels("counted" if is_new else "repeated").inc()
                else:
                    cause = str(event) if isinstance(event, Rejected) else f"{event.TYPE} is not an attempt count"
                    dead_letters.append(self._reject(record, cause))
            self._next_offsets[partition] = records[-1].offset + 1
        return dead_letters

    def _reject(self, record: Record, cause: str) -> EncodedRecord:
        self._metrics.records.labels("rejected").inc()
        self._dead_letter_log.note(record, cause)
        return to_dead_letter(record, cause, datetime.now(UTC))

    async def _publish(self) -> None:
        self._published_at = time.monotonic()
        taken = {partition: counts.take() for partition, counts in self._counts.items()}
        await self._topics.send([encode(event, TRENDS.name) for changes in taken.values() for event in changes.trends])
        # After the rows of every window before: nothing publishes them again.
        offsets = {
            partition: changes.restart_offset
            for partition, changes in taken.items()
            if changes.restart_offset not in (None, self._committed.get(partition))
        }
        if offsets:
            await commit_until(self._consumer, offsets)
            self._committed |= offsets
