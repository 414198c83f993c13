"""The agent: one coroutine over the records of all partitions that this worker has.

It is a plain coroutine over an async iterable: Faust feeds it in the worker, a generator feeds it in tests. Nothing
escapes it: a record that can't be understood is set aside, and its neighbours go on.
"""

import logging
import time
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pipeline.metrics import Metrics
from pipeline.worker.offset_tracker import OffsetTracker
from pipeline.worker.open_attempts import ClosedAttempt, DeviceRecord, OpenAttempts
from pipeline.worker.record_decoder import RecordDecoder
from pipeline.worker.writer import AttemptWrite, EarlyDevices, FindingWrite, RejectedRecord, Writer
from pipeline.worker.writer_pool import WriterPool
from schemas.codec.records import Rejected
from schemas.events import (
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    DevicesJudged,
    Event,
    FindingReported,
    MessageEmitted,
)
from summaries.tally import CountedRecord

logger = logging.getLogger(__name__)

Acknowledge = Callable[[], object]

HELD_BYTES: Final = 64 * 1024 * 1024
"""Device rows of open attempts; what is beyond is written before it is known whether it says anything new."""
READ_BYTES: Final = 32 * 1024 * 1024
"""What is remembered of records, so that the same again need not be read again."""


class Record(NamedTuple):
    """A record as it was read, and how to acknowledge it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    acknowledge: Acknowledge


@dataclass(slots=True)
class _Partition:
    number: int
    writer: Writer
    attempts: OpenAttempts
    offsets: OffsetTracker[Acknowledge] = field(default_factory=OffsetTracker)
    is_ours: bool = True

    def done(self, offsets: Iterable[int]) -> None:
        """Acknowledge what can be. Of a partition that has moved nothing is: its new owner reads it again."""
        for acknowledge in self.offsets.complete(offsets):
            if self.is_ours:
                acknowledge()


class DecisionsAgent:
    """Folds decisions into tellings. ``clock`` gives seconds and never goes back."""

    def __init__(
        self,
        writers: WriterPool,
        metrics: Metrics,
        *,
        incomplete_after_seconds: float = 30.0,
        store_devices: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writers = writers
        self._metrics = metrics
        self._patience = incomplete_after_seconds
        self._store_devices = store_devices
        self._clock = clock
        self._decoder = RecordDecoder(READ_BYTES)
        self._partitions: dict[tuple[str, int], _Partition] = {}

    @property
    def open_attempts(self) -> int:
        return sum(len(each.attempts) for each in self._partitions.values())

    @property
    def unacknowledged(self) -> int:
        """Records read and not acknowledged."""
        return sum(len(each.offsets) for each in self._partitions.values())

    async def fold(self, records: AsyncIterable[Record]) -> None:
        """Take in records for ever."""
        async for record in records:
            await self._take(record)

    async def give_up(self) -> None:
        """Tell the attempts whose end does not come; to be called every now and then."""
        for partition in list(self._partitions.values()):
            for ended in partition.attempts.give_up(self._clock()):
                logger.warning(
                    "attempt %s of %s is told as incomplete: %.300s",
                    ended.summary.attempt_id, ended.summary.pod, ended.summary.missing,
                )  # fmt: skip
                await self._tell(partition, ended, None)

    def forget(self) -> None:
        """Partitions are being given out anew: all that was not acknowledged will be read again, by whoever has it."""
        for partition in self._partitions.values():
            partition.is_ours = False
        self._partitions.clear()
        self._writers.forget()

    async def _take(self, record: Record) -> None:
        partition = self._partition(record.topic, record.partition)
        if not partition.offsets.track(record.offset, record.acknowledge):
            return
        event = self._decoder.decode(record.value, record.headers)
        if isinstance(event, Rejected):
            await self._set_aside(partition, record, str(event))
        elif not isinstance(event, AttemptEvent | CountedRecord) or isinstance(
            event, AttemptSummarized | AttemptRepeated | MessageEmitted
        ):
            self._pass_over(partition, record, event, "passed_over")
        elif isinstance(event, FindingReported):
            self._metrics.records(event.TYPE, "folded").inc()
            await partition.writer.put(FindingWrite(event, record, lambda: partition.done([record.offset])))
        elif partition.attempts.is_repetition(event):
            self._pass_over(partition, record, event, "repeated")
        else:
            await self._fold(partition, record, event)

    def _partition(self, topic: str, partition: int) -> _Partition:
        known = self._partitions.get((topic, partition))
        if known is None:
            known = _Partition(partition, self._writers.of(partition), OpenAttempts(self._patience))
            self._partitions[topic, partition] = known
        return known

    def _pass_over(self, partition: _Partition, record: Record, event: Event | CountedRecord, outcome: str) -> None:
        self._metrics.records(_type(event), outcome).inc()
        partition.done([record.offset])

    async def _set_aside(self, partition: _Partition, record: Record, cause: str) -> None:
        # The type as the record claims it would be a label that anybody can make up.
        self._metrics.records("unknown", "rejected").inc()
        logger.warning("%s[%d]@%d: %.500s", record.topic, record.partition, record.offset, cause)
        await partition.writer.put(RejectedRecord(record, cause, lambda: partition.done([record.offset])))

    async def _fold(self, partition: _Partition, record: Record, event: AttemptEvent | CountedRecord) -> None:
        rows = self._rows(event, record)
        can_wait = partition.attempts.held_bytes < HELD_BYTES // len(self._partitions)
        try:
            ended = partition.attempts.add(event, record.offset, self._clock(), rows if can_wait else None)
        except Exception as error:
            logger.exception("a defect of the fold: %s[%d]@%d", record.topic, record.partition, record.offset)
            await self._set_aside(partition, record, f"the fold failed: {type(error).__name__}: {error}")
            return
        self._metrics.records(_type(event), "folded").inc()
        if rows and not can_wait:
            await partition.writer.put(EarlyDevices(rows))
        if ended:
            await self._tell(partition, ended, record)

    def _rows(self, event: AttemptEvent | CountedRecord, record: Record) -> DeviceRecord | None:
        if not self._store_devices or not isinstance(event, CountedRecord) or record.value is None:
            return None
        return DeviceRecord(event, record.value, record)

    async def _tell(self, partition: _Partition, ended: ClosedAttempt, origin: Record | None) -> None:
        await partition.writer.put(
            AttemptWrite(ended.summary, origin, lambda: partition.done(ended.offsets), ended.rows, partition.number)
        )


def _type(event: Event | CountedRecord) -> str:
    return DevicesJudged.TYPE if isinstance(event, CountedRecord) else event.TYPE
