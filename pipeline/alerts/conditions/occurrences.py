"""Series and counts of occurrences over time. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline.alerts.timeline import EPOCH, TICK


def _count_ticks(happened_at: datetime) -> int:
    """Count the ticks up to the first one that is not before ``happened_at``."""
    # Floor division of the negated span rounds up, without floating point.
    return -((EPOCH - happened_at) // TICK)


class TickCounter:
    """Counts of occurrences by tick. Its memory grows with the ticks, not with the number of occurrences."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, happened_at: datetime, count: int = 1) -> None:
        self._counts[_count_ticks(happened_at)] += count

    def count_between(self, after: datetime, until: datetime) -> int:
        """Count occurrences after ``after`` and up to ``until``; a time between two ticks counts as the later one."""
        first, last = _count_ticks(after), _count_ticks(until)
        return sum(count for tick, count in self._counts.items() if first < tick <= last)

    def drop(self, until: datetime) -> None:
        """Drop what occurred at ``until`` or before."""
        last = _count_ticks(until)
        for tick in [tick for tick in self._counts if tick <= last]:
            del self._counts[tick]


@dataclass(slots=True)
class Streak:
    """An unbroken series of occurrences."""

    started_at: datetime
    latest_at: datetime
    count: int = 0

    @classmethod
    def start(cls, happened_at: datetime) -> "Streak":
        """Start a streak without an occurrence; ``extend`` adds the first one too."""
        return cls(happened_at, happened_at)

    def extend(self, happened_at: datetime) -> None:
        # Records of several partitions: the next one read may be a little older.
        self.latest_at = max(self.latest_at, happened_at)
        self.count += 1


class WindowCount:
    """Counts of occurrences per set of labels in the latest minutes."""

    def __init__(self, window: timedelta) -> None:
        self.window = window
        self._counters: defaultdict[tuple[tuple[str, str], ...], TickCounter] = defaultdict(TickCounter)

    def add(self, labels: dict[str, str], happened_at: datetime, count: int = 1) -> None:
        self._counters[tuple(sorted(labels.items()))].add(happened_at, count)

    def list_reaching(self, at_least: int, now: datetime) -> Iterator[tuple[dict[str, str], int]]:
        """List the labels, with their count, that occurred ``at_least`` so often in the window that ends now."""
        for key, counter in sorted(self._counters.items()):
            counter.drop(now - self.window)
            count = counter.count_between(now - self.window, now)
            if not counter:
                del self._counters[key]
            elif count >= at_least:
                yield dict(key), count
