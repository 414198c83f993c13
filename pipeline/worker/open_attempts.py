"""The open attempts of one partition: records go in until an attempt is complete, or has waited too long for the rest.

Pure: records and the time go in, ``ClosedAttempt`` comes out. Closed attempts are remembered for a while, so that a
repeated record is recognized, and a record that comes after its attempt expired is folded with the earlier ones.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from engine.summaries.fold import AttemptFold, summarize
from runtime.bounded_cache import BoundedCache
from runtime.kafka.record import Record
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import AttemptEvent, AttemptSummarized, BindConcluded, DevicesJudged

REMEMBERED_ATTEMPTS: Final = 20_000
"""Ids of complete attempts."""
REMEMBERED_SECONDS: Final = 600.0
"""For so long. A record that is repeated later costs a second write, which changes nothing."""
REMEMBERED_FOLDS: Final = 200
"""Attempts that expired, with the records that had come."""


class DeviceRecord(NamedTuple):
    """A record of device verdicts. Whether it is passed on depends on its attempt: a repetition has none."""

    event: DevicesJudged
    read: Record

    @property
    def size(self) -> int:
        """Bytes in memory, approximately: the JSON, 16 for each row and 100 for each node that is decoded."""
        return len(self.read.value or b"") + 16 * len(self.event.verdict) + 100 * len(self.event.nodes)


@dataclass(frozen=True, slots=True)
class ClosedAttempt:
    """An attempt that is to be published, and its records."""

    summary: AttemptSummarized
    offsets: tuple[int, ...]
    """Rising."""
    recorded_at: datetime
    """When Kafka took the last of the records."""
    device_records: tuple[DeviceRecord, ...] = ()
    has_expired: bool = False
    """Was it closed by time, and not by its last record?"""
    trace: Trace = NO_TRACE
    """The trace of its records; empty where they are not traced."""


@dataclass(slots=True)
class _Open:
    fold: AttemptFold
    last_record_at: float
    recorded_at: datetime
    offsets: list[int] = field(default_factory=list)
    device_records: list[DeviceRecord] = field(default_factory=list)
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
        """Is the attempt complete, so that this record was folded before?"""
        # A bind is not counted by the conclusion of its attempt, and usually comes after it.
        return event.attempt_id in self._complete and not isinstance(event, BindConcluded)

    def add(
        self,
        event: AttemptEvent,
        offset: int,
        now: float,
        recorded_at: datetime,
        device_record: DeviceRecord | None = None,
        trace: Trace = NO_TRACE,
    ) -> ClosedAttempt | None:
        """Fold a record, which Kafka took at ``recorded_at``; the attempt, if it is complete now. The ``device_record``
        is kept until then."""
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
            self.held_bytes += device_record.size
        if attempt.fold.is_complete():
            self._remember_complete(event.attempt_id, now)
            return self._close(attempt, has_expired=False)
        # Put last: `expire` relies on open attempts being in the order of their latest records.
        self._open[event.attempt_id] = attempt
        return None

    def _begin(self, attempt_id: str, now: float, recorded_at: datetime) -> _Open:
        return _Open(self._expired.pop(attempt_id) or AttemptFold(), now, recorded_at)

    def _remember_complete(self, attempt_id: str, now: float) -> None:
        self._complete[attempt_id] = now
        # Kept in the order of their times, on which the loop below relies.
        self._complete.move_to_end(attempt_id)
        while (
            len(self._complete) > REMEMBERED_ATTEMPTS or now - next(iter(self._complete.values())) > REMEMBERED_SECONDS
        ):
            self._complete.popitem(last=False)

    def expire(self, now: float) -> Iterator[ClosedAttempt]:
        """Close the attempts of which no record has come for too long: incomplete, as far as they are known."""
        while self._open:
            attempt_id, attempt = next(iter(self._open.items()))
            if now - attempt.last_record_at < self._incomplete_after_seconds:
                return
            del self._open[attempt_id]
            # Only the fold and not the device records: those are published with this summary.
            self._expired.put(attempt_id, attempt.fold)
            yield self._close(attempt, has_expired=True)

    def _close(self, attempt: _Open, *, has_expired: bool) -> ClosedAttempt:
        self.held_bytes -= sum(record.size for record in attempt.device_records)
        return attempt.close(has_expired=has_expired)
