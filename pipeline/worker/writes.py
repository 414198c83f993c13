"""What the agent hands to the writer: an attempt, device records, a finding, or a record to dead-letter."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.dead_letter import Source
from pipeline.settings import WorkerSettings
from pipeline.worker.attempt_records import size_of
from pipeline.worker.open_attempts import ClosedAttempt, DeviceRecord
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import FindingReported

OnWritten = Callable[[], None]
"""Called when all that follows from the write is on the topics: its records can be acknowledged."""


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
        """Bytes of memory until it is published, approximately: the summary, and its JSON."""
        return 2 * size_of(self.closed.summary) + sum(record.size for record in self.closed.device_records)


class EarlyDevices(NamedTuple):
    """A device record that is published before its attempt is closed, because memory for such records is full.

    It has no ``on_written``: the record is acknowledged with its attempt.
    """

    device_record: DeviceRecord

    @property
    def size(self) -> int:
        return self.device_record.size


class RejectedRecord(NamedTuple):
    """A record that could not be processed: it goes to the dead letters."""

    source: Source
    cause: str
    on_written: OnWritten

    @property
    def size(self) -> int:
        # Besides the value: key, headers and cause.
        return len(self.source.value or b"") + 1_000


class FindingWrite(NamedTuple):
    """A finding that the scheduler or a log reader reported: it passes through to its topic."""

    event: FindingReported
    on_written: OnWritten

    @property
    def size(self) -> int:
        return 2_000 + sum(map(len, self.event.evidence))


QueuedWrite = AttemptWrite | EarlyDevices | RejectedRecord | FindingWrite


def writer_policy(settings: WorkerSettings) -> WriterPolicy:
    """As the settings say."""
    return WriterPolicy(
        linger_seconds=settings.linger.total_seconds(),
        queue_bytes=settings.queue_size,
        summary_cache_bytes=settings.summary_cache_size,
        node_pools=settings.node_pools,
    )
