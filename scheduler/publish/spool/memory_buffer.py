"""Buffer of entries while the spool's disk can't be written: in memory, bounded, lost with the process."""

from collections import deque
from collections.abc import Sequence
from datetime import datetime

from scheduler.publish.spool.frames import Entry, EntryKind
from scheduler.publish.spool.shedding import Thinned

CAUSE = "the spool's disk could not be written, and memory was full"


class MemoryBuffer:
    """First in, first out. Above `max_bytes` it drops device detail first, then the oldest verdicts."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: deque[Entry] = deque()
        self.bytes = 0
        self.dropped_detail = 0
        self.dropped_verdicts = 0

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entries: Sequence[Entry], now: datetime) -> None:
        self._entries.extend(entries)
        self.bytes += sum(map(_measure, entries))
        if self.bytes > self._max_bytes:
            self._thin(now)
        while self.bytes > self._max_bytes:
            self.dropped_verdicts += 1
            self.bytes -= _measure(self._entries.popleft())

    def _thin(self, now: datetime) -> None:
        # Without detail, thinning would copy all entries and free nothing.
        if any(entry.kind is EntryKind.DETAIL for entry in self._entries):
            thinned = Thinned(self._entries, now, CAUSE)
            self.dropped_detail += thinned.dropped_records
            self._entries = deque(thinned.remaining)
            self.bytes = sum(map(_measure, self._entries))

    def peek(self, max_bytes: int) -> list[Entry]:
        """Peek at the oldest entries, about `max_bytes` of them, at least one if there is any."""
        batch: list[Entry] = []
        left = max_bytes
        for entry in self._entries:
            if batch and left < _measure(entry):
                break
            batch.append(entry)
            left -= _measure(entry)
        return batch

    def remove(self, entries: Sequence[Entry]) -> None:
        """Take out what `peek` returned, as far as it was not dropped or written to disk since."""
        for entry in entries:
            if self._entries and self._entries[0] is entry:
                self._entries.popleft()
                self.bytes -= _measure(entry)

    def list_entries(self) -> list[Entry]:
        return list(self._entries)

    def get_oldest_time(self) -> int | None:
        """Return when the oldest entry was written, in microseconds since 1970."""
        return self._entries[0].written_at_us if self._entries else None

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0


def _measure(entry: Entry) -> int:
    return len(entry.record.value) + len(entry.record.key) + 256
