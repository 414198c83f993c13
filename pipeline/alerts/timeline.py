"""One order for what comes on many partitions, and a clock that ticks in it. Pure.

The order is that of the records' times in Kafka, which are the same whenever they are read; so the ticks fall between
the same records when a day is read again. A record that comes later than the clock has gone is taken as of now.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pipeline.alerts.inputs import Seen

TICK: Final = timedelta(seconds=15)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def tick_after(at: datetime) -> datetime:
    """The next whole tick; all clocks tick together."""
    return EPOCH + ((at - EPOCH) // TICK + 1) * TICK


@dataclass(order=True, slots=True)
class _Waiting:
    at: datetime
    place: tuple[str, int, int]
    """Topic, partition and offset: the order of what has one time."""
    seen: list[Seen] = field(compare=False)


class Timeline:
    """Begins at ``start``."""

    def __init__(self, start: datetime) -> None:
        self._waiting: list[_Waiting] = []
        self._tick = tick_after(start)

    def put(self, at: datetime, place: tuple[str, int, int], seen: list[Seen]) -> None:
        heapq.heappush(self._waiting, _Waiting(at, place, seen))

    def advance(self, known_until: datetime) -> Iterator[Seen | datetime]:
        """What was seen and the ticks, in order, up to a time before which nothing more is to come."""
        while True:
            first = self._waiting[0].at if self._waiting else known_until
            if self._tick <= min(first, known_until):
                self._tick += TICK
                yield self._tick - TICK
            elif self._waiting and first < known_until:
                yield from heapq.heappop(self._waiting).seen
            else:
                return
