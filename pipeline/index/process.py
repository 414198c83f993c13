"""``python -m pipeline index`` as a process: reads six topics, writes documents, then commits the offsets.

While one batch is being written the next one gathers, so that a busy index gets large batches and an idle one small
ones. A batch is bounded, and no more than two are in memory.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, Protocol

from pipeline.index.batch_builder import Batch, DocumentBatchBuilder
from pipeline.index.index_writer import IndexWriter
from pipeline.index.state_audit import Ends, StateAudit, audit_until_cancelled
from pipeline.index.summary_parts import SummaryParts
from pipeline.metrics import IndexWriterMetrics
from pipeline.settings import IndexSettings
from pipeline.sinks.index_watch import IndexWatch, watch_until_cancelled
from pipeline.sinks.kafka import create_topics_sink
from pipeline.sinks.opensearch import OpenSearchSink
from runtime.backoff import describe_first_wait
from runtime.kafka.broker_clock import BrokerClock
from runtime.kafka.consumer import (
    Connection,
    TopicPartition,
    commit_until,
    create_consumer,
    followed,
    keep_reconnecting,
    on_assignment,
)
from runtime.kafka.inspection import read_committed_offsets, read_end_offsets
from runtime.kafka.record import to_record
from runtime.kafka.topics import list_topic_names, require
from runtime.opensearch.client import create_client
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import run_until_first_ends, run_until_stopped
from runtime.telemetry.health import ServeHealth, report_no_problem, serving
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.documents.devices import DevicesJudgedHead
from schemas.topics import ATTEMPTS, CLOCK, DEAD_LETTERS, DEVICE_VERDICTS, FINDINGS, NODE_STATES, PODS, TRENDS

logger = logging.getLogger(__name__)

READ: Final = (ATTEMPTS, DEVICE_VERDICTS, FINDINGS, TRENDS, NODE_STATES, PODS)
_REQUESTS: Final = 4
"""Bulk requests in a full batch: two run side by side, and one that is late holds up little."""
_RECORDS_A_STEP: Final = 200
_SLICE_SECONDS: Final = 0.002
"""Time for making documents before the event loop may send and receive: a request of megabytes takes tens of its
turns."""
_POLL_SECONDS: Final = 1.0
_LONGEST_BATCH_SECONDS: Final = 3_600
"""A batch may wait this long for the index before the group gives the partitions to another process."""


async def run(settings: IndexSettings, group: str, tracing: Tracing = NO_TRACING) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``NotProvisionedError`` if topics or templates are missing, ``SettingError`` if the metrics address is in
    use.
    """
    await run_until_stopped(work(settings, group, tracing))


async def work(
    settings: IndexSettings, group: str, tracing: Tracing = NO_TRACING, serve_health: ServeHealth = serving
) -> None:
    """Work until cancelled; ``serve_health`` shows metrics and readiness meanwhile."""
    longest_pause = settings.max_backoff_seconds
    metrics, parts = IndexWriterMetrics(), SummaryParts()
    store = create_client(settings)
    topics = create_topics_sink(settings, metrics.topics, longest_pause)
    clock = BrokerClock(topics, longest_pause)
    index = OpenSearchSink(
        store,
        metrics.index,
        batch_documents=settings.batch_documents,
        batch_bytes=settings.batch_size,
        max_backoff_seconds=longest_pause,
        wait_for_right_time=clock.wait_until_right,
    )
    builder = DocumentBatchBuilder(parts, _REQUESTS * settings.batch_documents, _REQUESTS * settings.batch_size)
    audit = StateAudit(index, topics, _StatePositions(settings, group), lambda: datetime.now(UTC))
    metrics.topics.watch_clock(clock)
    writer = IndexWriter(index, topics, metrics, wait_for_right_time=clock.wait_until_right, tracing=tracing)
    reader = TopicsReader(builder, writer, audit, settings.index_linger.total_seconds())
    connection = Connection(longest_pause)

    def on_lost(names: Sequence[str]) -> None:
        index.forget_indices(names)
        # States that it has found may be gone: the next verdicts that refer to them are checked.
        audit.clear()

    watch = IndexWatch(store, on_lost, lambda: index.written_indices)

    metrics.watch("is_waiting", lambda: index.is_waiting)
    metrics.watch("waiting_seconds", lambda: index.waiting.waiting_seconds)
    metrics.watch("behind_seconds", lambda: reader.behind_seconds)
    metrics.watch("incomplete_summaries", lambda: len(parts))

    async def run_session() -> None:
        require([topic.name for topic in (*READ, DEAD_LETTERS, CLOCK)], await list_topic_names(settings))
        consumer = create_consumer(
            settings,
            group=group,
            session_seconds=settings.session_seconds,
            max_poll_interval_ms=_LONGEST_BATCH_SECONDS * 1000,
        )
        # Positions begin where the group has committed: what was read and is not written comes again.
        consumer.subscribe([topic.name for topic in READ], listener=on_assignment(reader.forget))
        async with followed(consumer, connection):
            await reader.work(consumer)

    def check_ready() -> str:
        return describe_first_wait((index.waiting, topics.waiting, clock.waiting, connection))

    with serve_health(settings.metrics_address, metrics.registry, report_no_problem, check_ready):
        try:
            # Before anything is read: without its template a new index would guess the mapping of its fields.
            await index.check()
            await run_until_first_ends(
                keep_reconnecting(run_session, connection),
                audit_until_cancelled(audit),
                watch_until_cancelled(watch),
                clock.follow(),
            )
        finally:
            await topics.close()
            await index.close()


class _StatePositions:
    def __init__(self, kafka: KafkaConnection, group: str) -> None:
        self._kafka, self._group = kafka, group

    async def fetch_ends(self) -> Ends:
        return await read_end_offsets(self._kafka, NODE_STATES.name)

    async def fetch_committed(self, partitions: Sequence[TopicPartition]) -> Ends:
        return await read_committed_offsets(self._kafka, self._group, partitions)


class StateReferences(Protocol):
    """Receiver of verdicts after their documents are written."""

    def refer(self, event: DevicesJudgedHead) -> None: ...
    def clear(self) -> None: ...


class TopicsReader:
    """Fills a batch while the one before is written."""

    def __init__(
        self,
        builder: DocumentBatchBuilder,
        writer: IndexWriter,
        references: StateReferences,
        linger_seconds: float = 0.05,
    ) -> None:
        self._builder, self._writer, self._references = builder, writer, references
        self._linger_seconds = linger_seconds
        self._writing: asyncio.Task[None] | None = None
        self._began_at = 0.0
        self._assignment = 0
        """Number of times that partitions have moved."""
        self._oldest_ms: int | None = None
        """Kafka's time of the oldest record in the batch that is being written."""

    @property
    def behind_seconds(self) -> float:
        """Age of the oldest record that was read and is not written."""
        oldest = [time_ms for time_ms in (self._oldest_ms, self._builder.oldest_ms) if time_ms is not None]
        return max(time.time() - min(oldest) / 1000, 0.0) if oldest else 0.0

    async def work(self, consumer: Any) -> None:
        """Read until Kafka fails, or until cancelled."""
        try:
            while True:
                await self.step(consumer)
        finally:
            if self._writing:
                # What it has not committed is read again.
                self._writing.cancel()
                await asyncio.gather(self._writing, return_exceptions=True)
                self._writing = None
            self._builder.forget()

    def forget(self) -> None:
        """Drop the batch, because partitions have moved: this process or another reads its records again."""
        self._assignment += 1
        self._builder.forget()
        self._references.clear()

    async def step(self, consumer: Any) -> None:
        was_empty = self._builder.is_empty
        patience = _POLL_SECONDS if was_empty else max(self._began_at + self._linger_seconds - time.monotonic(), 0.0)
        batches = await consumer.getmany(timeout_ms=int(patience * 1000), max_records=_RECORDS_A_STEP)
        if was_empty:
            self._began_at = time.monotonic()
        await self._add(chain.from_iterable(batches.values()))
        self._raise_failure()
        if not self._builder.is_empty and self._is_due(has_records=bool(batches)):
            await self._hand_over(consumer)
        # A buffer with more records answers `getmany` at once: without this the writing would never get its turn.
        await asyncio.sleep(0)

    async def _add(self, records: Iterable[Any]) -> None:
        assignment, until = self._assignment, time.monotonic() + _SLICE_SECONDS
        for record in records:
            self._builder.add(to_record(record))
            if time.monotonic() >= until:
                await asyncio.sleep(0)
                # Partitions have moved meanwhile: the others are read again, too.
                if assignment != self._assignment:
                    return
                until = time.monotonic() + _SLICE_SECONDS

    def _is_due(self, *, has_records: bool) -> bool:
        if self._builder.is_full or not has_records:
            return True
        is_idle = self._writing is None or self._writing.done()
        return is_idle and time.monotonic() >= self._began_at + self._linger_seconds

    async def _hand_over(self, consumer: Any) -> None:
        if self._writing:
            await self._writing
        # Partitions may have moved meanwhile: then nothing is left of the batch.
        if self._builder.is_empty:
            return
        batch = self._builder.take()
        self._oldest_ms = batch.oldest_ms
        self._writing = asyncio.create_task(self._write(consumer, batch))

    async def _write(self, consumer: Any, batch: Batch) -> None:
        await self._writer.write(batch)
        for verdicts in batch.verdicts:
            self._references.refer(verdicts)
        # After everything is in the index: a crash before this line reads the records again, which changes nothing.
        await commit_until(
            consumer, {TopicPartition(*partition): offset for partition, offset in batch.committable.items()}
        )
        self._oldest_ms = None

    def _raise_failure(self) -> None:
        if self._writing and self._writing.done():
            self._writing.result()
            self._writing = None
