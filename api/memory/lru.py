"""Thread-safe least-recently-used (LRU) store, bounded by count and by bytes.

The caller gives the time of each use. The order of calls would not do: the topic is replayed partition by partition, so
the record that arrives last is not the latest one.
"""

import heapq
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    value: V
    size_bytes: int
    used_at: float


class Lru(Generic[K, V]):
    """Store of at most ``max_count`` values of ``max_bytes`` in all; the least recently used leave first."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._entries: dict[K, _Entry[V]] = {}
        # A heap of (used_at, serial, key) with one item per entry. A read updates only the entry; the item is renewed
        # when it reaches the front, so that a read costs one assignment and not one push.
        self._queue: list[tuple[float, int, K]] = []
        self._serial = 0
        self._bytes = 0
        self._evicted = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    @property
    def evicted(self) -> int:
        """Number of values evicted to keep the bounds."""
        return self._evicted

    def list_values(self) -> list[V]:
        """List all values, without counting as a use."""
        with self._lock:
            return [entry.value for entry in self._entries.values()]

    def list_items(self) -> list[tuple[K, V]]:
        """List all keys with their values, without counting as a use."""
        with self._lock:
            return [(key, entry.value) for key, entry in self._entries.items()]

    def peek(self, key: K) -> V | None:
        """Get the value, without counting as a use."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.value if entry else None

    def get(self, key: K, now: float) -> V | None:
        """Get the value; counts as a use at ``now``, in seconds."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            # Never back: a replayed record is older than requests that have used the pod in the meantime.
            entry.used_at = max(entry.used_at, now)
            return entry.value

    def put(self, key: K, value: V, size_bytes: int, used_at: float) -> None:
        """Store ``value`` as used at ``used_at``, in seconds. A value larger than ``max_bytes`` is not stored.

        In that case the previous value of ``key`` is dropped too, because it is out of date.
        """
        with self._lock:
            before = self._entries.get(key)
            if before is None:
                self._enqueue(key, used_at)
            else:
                used_at = max(before.used_at, used_at)
                self._bytes -= before.size_bytes
            self._entries[key] = _Entry(value, size_bytes, used_at)
            self._bytes += size_bytes
            if size_bytes > self._max_bytes:
                # Evicted at once: making space for it would evict all the others first.
                self._evict(key)
                self._compact_queue()
            while len(self._entries) > self._max_count or self._bytes > self._max_bytes:
                self._evict(self._pop_least_recent())

    def remove(self, key: K) -> None:
        with self._lock:
            if entry := self._entries.pop(key, None):
                self._bytes -= entry.size_bytes
                self._compact_queue()

    def _enqueue(self, key: K, used_at: float) -> None:
        self._serial += 1  # breaks ties, so that the heap never compares keys
        heapq.heappush(self._queue, (used_at, self._serial, key))

    def _compact_queue(self) -> None:
        """Rebuild the queue once most of its items are of removed keys, which ``_pop_least_recent`` may never reach."""
        if len(self._queue) > 2 * len(self._entries) + 64:
            self._queue.clear()
            for key, entry in self._entries.items():
                self._enqueue(key, entry.used_at)

    def _evict(self, key: K) -> None:
        self._bytes -= self._entries.pop(key).size_bytes
        self._evicted += 1

    def _pop_least_recent(self) -> K:
        while True:
            queued_at, _, key = heapq.heappop(self._queue)
            entry = self._entries.get(key)
            if entry is None:
                continue
            # Otherwise it was used after it was queued, and its item is renewed.
            if entry.used_at <= queued_at:
                return key
            self._enqueue(key, entry.used_at)
