"""What the agent hands to a writer: an attempt, device records, a finding, or a record to dead-letter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.dead_letters.codec import Source
from pipeline.worker.attempt_documents import size_of
from pipeline.worker.open_attempts import DeviceRecord
from schemas.events import AttemptSummarized, FindingReported

OnWritten = Callable[[], None]
"""Called when all that follows from the write is in the index and the topics: its records can be acknowledged."""


@dataclass(frozen=True, slots=True)
class WriterPolicy:
    """The bounds of a writer; ``pipeline.settings`` explains them."""

    linger_seconds: float = 0.015
    queue_bytes: int = 32 * 1024 * 1024
    summary_cache_bytes: int = 64 * 1024 * 1024
    compared_bytes: int = 16 * 1024 * 1024
    """Memory for whole summaries that the next attempt of the pod may be compared with, to name what changed."""
    count_seconds: float = 0.0
    node_pools: str = ""


class AttemptWrite(NamedTuple):
    """An attempt to be written, and the record that closed it (None where the time closed it)."""

    summary: AttemptSummarized
    origin: Source | None
    on_written: OnWritten
    device_records: Sequence[DeviceRecord] = ()
    partition: int = 0

    @property
    def size(self) -> int:
        """Bytes of memory until it is written, approximately: the summary, and its JSON."""
        return 2 * size_of(self.summary) + sum(record.size for record in self.device_records)


class EarlyDevices(NamedTuple):
    """A device record that is written before its attempt is closed, because memory for such records is full.

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
    """A finding that the scheduler or a log reader reported: it passes through to the index and its topic."""

    event: FindingReported
    origin: Source
    on_written: OnWritten

    @property
    def size(self) -> int:
        return 2_000 + sum(map(len, self.event.evidence))


QueuedWrite = AttemptWrite | EarlyDevices | RejectedRecord | FindingWrite
