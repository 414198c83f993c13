"""Writes that the agent hands to the writer, and the bound on the bytes of those that wait."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pipeline.settings import WorkerSettings
from pipeline.worker.batch import estimate_size
from pipeline.worker.open_attempts import ClosedAttempt, measure
from runtime.kafka.record import DecodedRecord, Record
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import AttemptUnchanged, DevicesJudged, FindingReported

OnWritten = Callable[[], None]
"""Callback for when everything that follows from the write is on the topics: its records can be acknowledged."""


@dataclass(frozen=True, slots=True)
class WriterPolicy:
    """The bounds of the writer; ``pipeline.settings`` explains them."""

    linger_seconds: float = 0.003
    queue_bytes: int = 32 * 1024 * 1024
    summary_cache_bytes: int = 64 * 1024 * 1024
    node_pools: str = ""


class AttemptWrite(NamedTuple):
    """An attempt to be published."""

    closed: ClosedAttempt
    partition: int
    on_written: OnWritten
    trace: Trace = NO_TRACE
    """The trace of what is published."""

    @property
    def size(self) -> int:
        """Approximate bytes of memory until it is published: the summary, and its JSON."""
        return 2 * estimate_size(self.closed.summary) + sum(map(measure, self.closed.device_records))


class UnchangedWrite(NamedTuple):
    """An attempt that its source found unchanged: the writer restores it from the one that it repeats."""

    event: AttemptUnchanged
    offset: int
    recorded_at: datetime
    partition: int
    on_written: OnWritten
    trace: Trace = NO_TRACE

    @property
    def size(self) -> int:
        # The restored summary shares the columns of the earlier one.
        return 4_000


class EarlyDevices(NamedTuple):
    """A device record that is published before its attempt is closed, because memory for such records is full.

    It has no ``on_written``: the record is acknowledged with its attempt.
    """

    device_record: DecodedRecord[DevicesJudged]

    @property
    def size(self) -> int:
        return measure(self.device_record)


class RejectedRecord(NamedTuple):
    """A record that could not be processed: it goes to the dead letters."""

    record: Record
    cause: str
    on_written: OnWritten

    @property
    def size(self) -> int:
        # Besides the value: key, headers and cause.
        return self.record.size + 1_000


class FindingWrite(NamedTuple):
    """A finding that the scheduler or a log reader reported: it passes through to its topic."""

    event: FindingReported
    on_written: OnWritten

    @property
    def size(self) -> int:
        return 2_000 + sum(map(len, self.event.evidence))


QueuedWrite = AttemptWrite | UnchangedWrite | EarlyDevices | RejectedRecord | FindingWrite


def derive_policy(settings: WorkerSettings) -> WriterPolicy:
    """Derive the writer's bounds from the settings of the worker."""
    return WriterPolicy(
        linger_seconds=settings.linger.total_seconds(),
        queue_bytes=settings.queue_size,
        summary_cache_bytes=settings.summary_cache_size,
        node_pools=settings.node_pools,
    )


class ByteBudget:
    """Bytes in use, with a limit that all writers share: a busy writer uses what the others leave free."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._released = asyncio.Condition()
        self._waiting = 0
        self.used_bytes = 0

    @property
    def has_waiters(self) -> bool:
        """True while a writer waits for bytes to be released."""
        return self._waiting > 0

    async def acquire(self, size: int) -> None:
        """Reserve ``size`` bytes; waits until they are free."""
        async with self._released:
            self._waiting += 1
            try:
                # An item larger than the whole budget would never fit together with others: it goes by itself.
                await self._released.wait_for(lambda: not self.used_bytes or self.used_bytes + size <= self._max_bytes)
            finally:
                self._waiting -= 1
            # Still under the lock: between the wait and the sum no other waiter may take the same bytes.
            self.used_bytes += size

    async def release(self, size: int) -> None:
        """Give back what was acquired."""
        async with self._released:
            self.used_bytes -= size
            # All and not one: the first in the queue may need more than was released, and a smaller one behind it fits.
            self._released.notify_all()
