"""Open attempts of one partition: records go in until an attempt is complete, or has waited too long for more.

Pure: records and the time go in, ``ClosedAttempt`` comes out. This module remembers closed attempts for a while: it
recognizes a repeated record, and folds one that comes after its attempt expired with the earlier ones.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engine.summaries.fold import AttemptFold, summarize
from runtime.bounded_cache import BoundedCache
from runtime.kafka.record import DecodedRecord
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import AttemptEvent, AttemptSummarized, BindConcluded, DevicesJudged

REMEMBERED_ATTEMPTS: Final = 20_000
"""Limit of remembered ids of complete attempts."""
REMEMBERED_SECONDS: Final = 600.0
"""Time for which their ids are remembered. A record repeated later costs a second write, which changes nothing."""
REMEMBERED_FOLDS: Final = 200
"""Limit of expired attempts that are remembered with their records."""


def measure(record: DecodedRecord[DevicesJudged]) -> int:
    """Measure the record in memory, approximately: the JSON, 16 bytes for each row and 100 for each decoded node."""
    return record.record.size + 16 * len(record.event.verdict) + 100 * len(record.event.nodes)


@dataclass(frozen=True, slots=True)
class ClosedAttempt:
    """An attempt that is to be published, and its records."""

    summary: AttemptSummarized
    offsets: tuple[int, ...]
    """Offsets of its records, ascending."""
    recorded_at: datetime
    """Time at which Kafka took the last of the records."""
    device_records: tuple[DecodedRecord[DevicesJudged], ...] = ()
    has_expired: bool = False
    """True if it was closed by time, and not by its last record."""
    trace: Trace = NO_TRACE
    """The trace of its records; empty where they are not traced."""
    repeats: str = ""
    """For an attempt that its source found unchanged: the id of the one that the source published in full."""


@dataclass(slots=True)
class _Open:
    fold: AttemptFold
    last_record_at: float
    recorded_at: datetime
    offsets: list[int] = field(default_factory=list)
    device_records: list[DecodedRecord[DevicesJudged]] = field(default_factory=list)
    trace: Trace = NO_TRACE

    def close(self, *, has_expired: bool) -> ClosedAttempt:
        devices = tuple(self.device_records)
        return ClosedAttempt(
            self.fold.summarize(), tuple(self.offsets), self.recorded_at, devices, has_expired, self.trace
        )


class OpenAttempts:
    """The attempts of one partition. Times are seconds of a monotonic clock."""

    def __init__(self, incomplete_after_seconds: float) -> None:
        self._incomplete_after_seconds = incomplete_after_seconds
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._complete: OrderedDict[str, float] = OrderedDict()
        self._expired: BoundedCache[str, AttemptFold] = BoundedCache(REMEMBERED_FOLDS)
        self.held_bytes = 0
        """Bytes of the device records of open attempts."""

    def __len__(self) -> int:
        return len(self._open)

    def is_repetition(self, event: AttemptEvent) -> bool:
        """Tell whether the attempt is complete, so that this record was folded before."""
        # A bind is not counted by the conclusion of its attempt, and usually comes after it.
        return event.attempt_id in self._complete and not isinstance(event, BindConcluded)

    def add(
        self,
        event: AttemptEvent,
        offset: int,
        now: float,
        recorded_at: datetime,
        device_record: DecodedRecord[DevicesJudged] | None = None,
        trace: Trace = NO_TRACE,
    ) -> ClosedAttempt | None:
        """Fold a record, which Kafka took at ``recorded_at``, and hold its ``device_record``. Return the attempt if it
        is complete now."""
        # The records of the filter stand before the bind in the log. Where the attempt isn't open any more, it is
        # published: the bind is a summary of its own, which the writer merges with that.
        if isinstance(event, BindConcluded) and event.attempt_id not in self._open:
            return ClosedAttempt(summarize([event]), (offset,), recorded_at, trace=trace)
        attempt = self._open.pop(event.attempt_id, None) or self._begin(event.attempt_id, now, recorded_at)
        attempt.fold.add(event)
        attempt.offsets.append(offset)
        attempt.last_record_at, attempt.recorded_at = now, recorded_at
        attempt.trace = trace or attempt.trace
        if device_record:
            attempt.device_records.append(device_record)
            self.held_bytes += measure(device_record)
        if attempt.fold.is_complete():
            self.remember_complete(event.attempt_id, now)
            return self._close(attempt, has_expired=False)
        # Put last: `expire` relies on open attempts being in the order of their latest records.
        self._open[event.attempt_id] = attempt
        return None

    def _begin(self, attempt_id: str, now: float, recorded_at: datetime) -> _Open:
        return _Open(self._expired.pop(attempt_id) or AttemptFold(), now, recorded_at)

    def remember_complete(self, attempt_id: str, now: float) -> None:
        """Remember that the attempt is complete, to recognize its records when they are read a second time."""
        self._complete[attempt_id] = now
        # Kept in the order of their times, on which the loop below relies.
        self._complete.move_to_end(attempt_id)
        while (
            len(self._complete) > REMEMBERED_ATTEMPTS or now - next(iter(self._complete.values())) > REMEMBERED_SECONDS
        ):
            self._complete.popitem(last=False)

    def expire(self, now: float) -> Iterator[ClosedAttempt]:
        """Close the attempts of which no record has come for too long, as incomplete ones."""
        while self._open:
            attempt_id, attempt = next(iter(self._open.items()))
            if now - attempt.last_record_at < self._incomplete_after_seconds:
                return
            del self._open[attempt_id]
            # Only the fold and not the device records: those are published with this summary.
            self._expired.put(attempt_id, attempt.fold)
            yield self._close(attempt, has_expired=True)

    def _close(self, attempt: _Open, *, has_expired: bool) -> ClosedAttempt:
        self.held_bytes -= sum(map(measure, attempt.device_records))
        return attempt.close(has_expired=has_expired)
