"""The agent: one coroutine over the records of all partitions that this worker reads.

It is a plain coroutine over an async iterable: Faust feeds it in the worker, a generator feeds it in tests. It raises
nothing: Faust would start it again behind the record, which would stay unacknowledged and hold back its partition until
a restart. A record that can't be processed is dead-lettered instead, and the agent continues with the next one.
"""

import logging
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pipeline.dead_letter import DeadLetterLog
from pipeline.metrics import WorkerMetrics
from pipeline.worker.offset_tracker import OffsetTracker
from pipeline.worker.open_attempts import ClosedAttempt, OpenAttempts
from pipeline.worker.write_queue import (
    AttemptWrite,
    EarlyDevices,
    FindingWrite,
    OnWritten,
    QueuedWrite,
    RejectedRecord,
    UnchangedWrite,
)
from pipeline.worker.writer import Writer
from runtime.kafka.broker_clock import trust_own_clock
from runtime.kafka.record import Acknowledge, DecodedRecord, Record, identify_attempt, record_time
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.codec.records import Rejected, decode
from schemas.codec.trace_context import Trace, trace_of
from schemas.events import (
    AttemptCounted,
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    AttemptUnchanged,
    DevicesJudged,
    Event,
    FindingReported,
    MessagesEmitted,
)
from schemas.index_family import describe_impossible
from schemas.topics import DECISIONS

logger = logging.getLogger(__name__)

HELD_BYTES: Final = 64 * 1024 * 1024
"""Memory for device records of open attempts. Beyond it they are published at once, also those of an attempt that turns
out to repeat its predecessor and would have had none."""


@dataclass(slots=True)
class _Partition:
    number: int
    generation: int
    """The writer's generation when the partition was assigned."""
    attempts: OpenAttempts
    offsets: OffsetTracker[Acknowledge] = field(default_factory=OffsetTracker)
    is_assigned: bool = True

    def complete(self, offsets: Sequence[int]) -> None:
        """Note that these are published, and acknowledge what can be. After the partition was revoked nothing is
        acknowledged: its next owner reads the records again."""
        for acknowledge in self.offsets.complete(offsets):
            if self.is_assigned:
                acknowledge()


class DecisionsAgent:
    """Folds decisions into attempts and hands these to the writer. ``clock`` gives seconds and never goes back;
    ``wait_for_right_time`` returns while the time of day of this machine is right."""

    def __init__(
        self,
        writer: Writer,
        metrics: WorkerMetrics,
        *,
        incomplete_after_seconds: float = 30.0,
        store_devices: bool = True,
        clock: Callable[[], float] = time.monotonic,
        wait_for_right_time: Callable[[], Awaitable[None]] = trust_own_clock,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._tracing = tracing
        self._writer = writer
        self._metrics = metrics
        self._incomplete_after_seconds = incomplete_after_seconds
        self._store_devices = store_devices
        self._clock = clock
        self._wait_for_right_time = wait_for_right_time
        self._dead_letter_log = DeadLetterLog(logger, clock)
        self._partitions: dict[tuple[str, int], _Partition] = {}

    @property
    def open_attempts(self) -> int:
        """Attempts of which records are missing."""
        return sum(len(partition.attempts) for partition in self._partitions.values())

    @property
    def unacknowledged(self) -> int:
        """Records read and not acknowledged."""
        return sum(len(partition.offsets) for partition in self._partitions.values())

    async def fold(self, records: AsyncIterable[Record]) -> None:
        """Process the records, in their order."""
        # One after the other: an attempt is folded from its records in the order of their offsets.
        async for record in records:
            # By a wrong time a good record would be rejected as one of the future.
            await self._wait_for_right_time()
            await self._process(record)

    async def expire(self) -> None:
        """Publish the attempts that have waited too long for their missing records. To be called every second or so."""
        # A copy: `_put` awaits, and `forget` may clear the partitions meanwhile.
        for partition in list(self._partitions.values()):
            for closed in partition.attempts.expire(self._clock()):
                logger.warning(
                    "attempt %s of %s is published as incomplete: %.300s",
                    closed.summary.attempt_id, closed.summary.pod, closed.summary.missing,
                    extra=identify_attempt(closed.summary),
                )  # fmt: skip
                await self._put_attempt(partition, closed)

    def forget(self) -> None:
        """Drop all state, because partitions are being reassigned: their next owner, which may be this worker, reads
        every unacknowledged record again."""
        # Kafka's eager rebalance revokes all partitions, also those that come back; Faust then seeks to the committed
        # offsets, so state that was kept would count the records between them and the acknowledged ones twice.
        for partition in self._partitions.values():
            partition.is_assigned = False
        self._partitions.clear()
        self._writer.forget()

    async def _process(self, record: Record) -> None:
        partition = self._get_partition(record.topic, record.partition)
        # Read a second time while the first reading is under way: that one acknowledges it.
        if not partition.offsets.track(record.offset, record.acknowledge):
            return
        event = decode(record.value, record.headers)
        if isinstance(event, Rejected):
            await self._reject(partition, record, str(event))
        # These are what this worker publishes itself: on this topic they came from somebody else, and folding them
        # makes no attempt.
        elif not isinstance(event, AttemptEvent) or isinstance(
            event, AttemptSummarized | AttemptRepeated | AttemptCounted | MessagesEmitted
        ):
            self._skip(partition, record, event, "passed_over")
        elif impossible := await self._find_impossible_time(event):
            await self._reject(partition, record, f"started_at: {impossible}")
        elif isinstance(event, FindingReported):
            self._metrics.records(event.TYPE, "folded").inc()
            await self._put(partition, FindingWrite(event, lambda: partition.complete([record.offset])))
        elif partition.attempts.is_repetition(event):
            self._skip(partition, record, event, "repeated")
        elif isinstance(event, AttemptUnchanged):
            await self._put_unchanged(partition, record, event)
        else:
            await self._fold(partition, record, event)

    async def _find_impossible_time(self, event: AttemptEvent) -> str:
        """Find what is wrong with the time of an attempt; empty for a possible one."""
        if not describe_impossible(event.started_at, datetime.now(UTC)):
            return ""
        # The clock may have been set since it was found right: a good record is dead-lettered only by a right one.
        await self._wait_for_right_time()
        return describe_impossible(event.started_at, datetime.now(UTC))

    def _get_partition(self, topic: str, number: int) -> _Partition:
        partition = self._partitions.get((topic, number))
        if partition is None:
            attempts = OpenAttempts(self._incomplete_after_seconds)
            partition = _Partition(number, self._writer.generation, attempts)
            self._partitions[topic, number] = partition
        return partition

    def _skip(self, partition: _Partition, record: Record, event: Event, outcome: str) -> None:
        self._metrics.records(event.TYPE, outcome).inc()
        partition.complete([record.offset])

    async def _reject(self, partition: _Partition, record: Record, cause: str) -> None:
        # The type that the record claims is no label: anybody who can produce could make up any number of them.
        self._metrics.records("unknown", "rejected").inc()
        self._dead_letter_log.note(record, cause)
        await self._put(partition, RejectedRecord(record, cause, lambda: partition.complete([record.offset])))

    async def _fold(self, partition: _Partition, record: Record, event: AttemptEvent) -> None:
        device_record = self._to_device_record(event, record)
        # The bound is shared equally, so that one partition with many open attempts does not use up that of the others.
        can_wait = partition.attempts.held_bytes < HELD_BYTES // len(self._partitions)
        held_record = device_record if can_wait else None
        try:
            closed = partition.attempts.add(
                event, record.offset, self._clock(), record_time(record), held_record, trace_of(record.headers)
            )
        except Exception as error:
            # Of any kind: an error that leaves the agent holds back the partition (see above).
            logger.exception(
                "a defect of the fold: %s[%d]@%d", record.topic, record.partition, record.offset,
                extra=identify_attempt(event),
            )  # fmt: skip
            await self._reject(partition, record, f"the fold failed: {type(error).__name__}: {error}")
            return
        self._metrics.records(event.TYPE, "folded").inc()
        # Published before its attempt is closed, and acknowledged with it: after a crash it is published a second time,
        # under the same id.
        if device_record and not can_wait:
            await self._put(partition, EarlyDevices(device_record))
        if closed:
            await self._put_attempt(partition, closed)

    async def _put_unchanged(self, partition: _Partition, record: Record, event: AttemptUnchanged) -> None:
        partition.attempts.remember_complete(event.attempt_id, self._clock())
        self._metrics.records(event.TYPE, "folded").inc()
        on_written, trace = self._begin_span(partition, event, trace_of(record.headers), [record.offset])
        recorded_at, number = record_time(record), partition.number
        await self._put(partition, UnchangedWrite(event, record.offset, recorded_at, number, on_written, trace))

    def _to_device_record(self, event: AttemptEvent, record: Record) -> DecodedRecord[DevicesJudged] | None:
        if not self._store_devices or not isinstance(event, DevicesJudged) or record.value is None:
            return None
        return DecodedRecord(event, record)

    async def _put_attempt(self, partition: _Partition, closed: ClosedAttempt) -> None:
        on_written, trace = self._begin_span(partition, closed.summary, closed.trace, closed.offsets)
        await self._put(partition, AttemptWrite(closed, partition.number, on_written, trace))

    def _begin_span(
        self, partition: _Partition, attempt: AttemptEvent, trace: Trace, offsets: Sequence[int]
    ) -> tuple[OnWritten, Trace]:
        """Begin the span of an attempt, until it is written and its records are complete; return its trace, too."""
        span = self._tracing.begin(f"fold {DECISIONS.name}", trace, identify_attempt(attempt), kind="consumer")

        def on_written() -> None:
            span.end()
            partition.complete(offsets)

        return on_written, span.trace

    async def _put(self, partition: _Partition, write: QueuedWrite) -> None:
        # Waits while the budget of bytes is used up: that stops the reading of this worker, and with it Kafka's
        # fetches.
        await self._writer.put(write, partition.generation)
