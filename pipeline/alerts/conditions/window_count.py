"""Counts occurrences per set of labels in the latest minutes. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from pipeline.alerts.tick_counter import TickCounter


class WindowCount:
    def __init__(self, window: timedelta) -> None:
        self.window = window
        self._counters: defaultdict[tuple[tuple[str, str], ...], TickCounter] = defaultdict(TickCounter)

    def add(self, labels: dict[str, str], at: datetime, count: int = 1) -> None:
        self._counters[tuple(sorted(labels.items()))].add(at, count)

    def reaching(self, at_least: int, now: datetime) -> Iterator[tuple[dict[str, str], int]]:
        """Labels and counts of what occurred ``at_least`` so often in the window that ends now."""
        for key, counter in sorted(self._counters.items()):
            counter.drop(now - self.window)
            count = counter.between(now - self.window, now)
            if not counter:
                del self._counters[key]
            elif count >= at_least:
                yield dict(key), count
