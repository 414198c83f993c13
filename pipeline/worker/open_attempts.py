"""The attempts of one partition: which are open, which have come to their end, which will not get one.

Pure: records and the time go in, ``Ended`` comes out. What was told is remembered for a while, so that a record told
twice is known as such and a record that comes after its attempt was given up still finds the rest of it.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from schemas.events import AttemptEvent, AttemptSummarized, BindConcluded
from summaries.fold import AttemptFold, summarize
from summaries.tally import CountedRecord

REMEMBERED_ATTEMPTS: Final = 20_000
"""Ids of attempts that were told to their end."""
REMEMBERED_SECONDS: Final = 600.0
"""How long they are. A record that comes again later costs a second telling, which changes nothing."""
REMEMBERED_FOLDS: Final = 200
"""Attempts that were given up as incomplete, with what was known of them."""


class DeviceRecord(NamedTuple):
    """A record of device rows whose attempt decides whether it is stored."""

    event: CountedRecord
    value: bytes
    """The record's own JSON."""
    origin: object = None
    """Where it was read."""


@dataclass(frozen=True, slots=True)
class ClosedAttempt:
    """An attempt that is to be told, and the offsets that are done when it is written."""

    summary: AttemptSummarized
    offsets: tuple[int, ...]
    rows: tuple[DeviceRecord, ...] = ()


@dataclass(slots=True)
class _Open:
    fold: AttemptFold
    last_record: float
    offsets: list[int] = field(default_factory=list)
    rows: list[DeviceRecord] = field(default_factory=list)

    def ended(self) -> ClosedAttempt:
        return ClosedAttempt(self.fold.summarize(), tuple(self.offsets), tuple(self.rows))


class OpenAttempts:
    """The attempts of one partition. Times are seconds of any clock that only goes forward."""

    def __init__(self, incomplete_after_seconds: float) -> None:
        self._patience = incomplete_after_seconds
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._told: OrderedDict[str, float] = OrderedDict()
        self._given_up: OrderedDict[str, AttemptFold] = OrderedDict()
        self.held_bytes = 0
        """Of the rows of open attempts."""

    def __len__(self) -> int:
        return len(self._open)

    def is_repetition(self, event: AttemptEvent | CountedRecord) -> bool:
        """Was the attempt told to its end already, with nothing that this record could add?"""
        return event.attempt_id in self._told and not isinstance(event, BindConcluded)

    def add(
        self, event: AttemptEvent | CountedRecord, offset: int, now: float, rows: DeviceRecord | None = None
    ) -> ClosedAttempt | None:
        """Take in a record; the attempt, if it has come to its end with it. ``rows`` are kept until then.

        A bind ends at once what it is about: the filter's records stand before it, so the attempt was told already.
        """
        if isinstance(event, BindConcluded) and event.attempt_id not in self._open:
            return ClosedAttempt(summarize([event]), (offset,))
        attempt = self._open.pop(event.attempt_id, None) or self._begin(event.attempt_id, now)
        attempt.fold.add(event)
        attempt.offsets.append(offset)
        attempt.last_record = now
        if rows:
            attempt.rows.append(rows)
            self.held_bytes += len(rows.value)
        if attempt.fold.is_complete():
            self._remember_told(event.attempt_id, now)
            return self._end(attempt)
        # Behind all others: the order of the open attempts is that of their latest records.
        self._open[event.attempt_id] = attempt
        return None

    def _begin(self, attempt_id: str, now: float) -> _Open:
        known = self._given_up.pop(attempt_id) if attempt_id in self._given_up else AttemptFold()
        return _Open(known, now)

    def _remember_told(self, attempt_id: str, now: float) -> None:
        self._told[attempt_id] = now
        self._told.move_to_end(attempt_id)
        while len(self._told) > REMEMBERED_ATTEMPTS or now - next(iter(self._told.values())) > REMEMBERED_SECONDS:
            self._told.popitem(last=False)

    def give_up(self, now: float) -> Iterator[ClosedAttempt]:
        """The attempts of which no record has come for too long, as they are known."""
        while self._open:
            attempt_id, attempt = next(iter(self._open.items()))
            if now - attempt.last_record < self._patience:
                return
            del self._open[attempt_id]
            self._remember_fold(attempt_id, attempt.fold)
            yield self._end(attempt)

    def _end(self, attempt: _Open) -> ClosedAttempt:
        self.held_bytes -= sum(len(rows.value) for rows in attempt.rows)
        return attempt.ended()

    def _remember_fold(self, attempt_id: str, fold: AttemptFold) -> None:
        self._given_up[attempt_id] = fold
        if len(self._given_up) > REMEMBERED_FOLDS:
            self._given_up.popitem(last=False)
