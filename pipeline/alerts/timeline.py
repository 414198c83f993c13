"""Timeline: the records of many partitions in one order, with the ticks of a clock between them. Pure.

The order is that of the timestamps in Kafka, which are the same at every reading. So the ticks fall between the same
records when a day is read again, and the same alerts follow. A record that arrives after the clock has passed its
timestamp is handed out at once.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pipeline.alerts.inputs import AlertInput

TICK: Final = timedelta(seconds=15)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def find_tick_after(received_at: datetime) -> datetime:
    """Find the first tick after this time. Ticks are multiples of ``TICK`` since 1970, so that every process has the
    same."""
    return EPOCH + ((received_at - EPOCH) // TICK + 1) * TICK


@dataclass(order=True, slots=True)
class _BufferedRecord:
    received_at: datetime
    position: tuple[str, int, int]
    """Topic, partition and offset: they order records of the same millisecond, equally at every reading."""
    inputs: list[AlertInput] = field(compare=False)


class Timeline:
    """Buffered records and the next tick, from ``start`` on."""

    def __init__(self, start: datetime) -> None:
        self._buffer: list[_BufferedRecord] = []
        self._tick = find_tick_after(start)

    def put(self, received_at: datetime, position: tuple[str, int, int], inputs: list[AlertInput]) -> None:
        heapq.heappush(self._buffer, _BufferedRecord(received_at, position, inputs))

    def advance(self, watermark: datetime) -> Iterator[AlertInput | datetime]:
        """Yield inputs and ticks in order, up to ``watermark``: a time before which no further record is expected."""
        while True:
            first = self._buffer[0].received_at if self._buffer else watermark
            # The tick comes before a record of the same time, at every reading.
            if self._tick <= min(first, watermark):
                self._tick += TICK
                yield self._tick - TICK
            # Not at the watermark itself: another partition may still have a record of that time.
            elif self._buffer and first < watermark:
                yield from heapq.heappop(self._buffer).inputs
            else:
                return
