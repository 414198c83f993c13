"""Counts occurrences by tick. Pure."""

from collections import Counter
from datetime import datetime

from pipeline.alerts.timeline import EPOCH, TICK


def _tick_of(at: datetime) -> int:
    """The number of the first tick that is not before ``at``."""
    # Floor division of the negated span rounds up, without floating point.
    return -((EPOCH - at) // TICK)


class TickCounter:
    """Memory grows with the ticks that are kept, not with the number of occurrences."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, at: datetime, count: int = 1) -> None:
        self._counts[_tick_of(at)] += count

    def between(self, after: datetime, until: datetime) -> int:
        """Occurrences after ``after`` and up to ``until``; a time between two ticks counts as the later one."""
        first, last = _tick_of(after), _tick_of(until)
        return sum(count for tick, count in self._counts.items() if first < tick <= last)

    def drop(self, until: datetime) -> None:
        """Drop what occurred at ``until`` or before."""
        last = _tick_of(until)
        for tick in [tick for tick in self._counts if tick <= last]:
            del self._counts[tick]
