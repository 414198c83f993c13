"""A thread-safe least-recently-used store, bounded by count and by bytes.

Recency is a time given by the caller and not the order of calls: the topic is replayed partition by partition, so what
arrives last is not what is latest.
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
    used: float


class Lru(Generic[K, V]):
    """At most ``max_count`` values of at most ``max_bytes`` in all; those used longest ago leave first."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._entries: dict[K, _Entry[V]] = {}
        # One place in the queue per entry, renewed only when it comes to the front: a read costs no more than a write
        # of one number.
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
        """How many values have left for want of room."""
        return self._evicted

    def peek(self, key: K) -> V | None:
        """The value, without this counting as a use."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.value if entry else None

    def get(self, key: K, now: float) -> V | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            entry.used = max(entry.used, now)
            return entry.value

    def put(self, key: K, value: V, size_bytes: int, used: float) -> None:
        """Keep ``value`` as used at ``used``. What is larger than all the room there is, is not kept at all."""
        with self._lock:
            before = self._entries.get(key)
            if before is None:
                self._enqueue(key, used)
            else:
                used = max(before.used, used)
                self._bytes -= before.size_bytes
            self._entries[key] = _Entry(value, size_bytes, used)
            self._bytes += size_bytes
            if size_bytes > self._max_bytes:
                self._evict(key)
                self._forget_places()
            while len(self._entries) > self._max_count or self._bytes > self._max_bytes:
                self._evict(self._oldest())

    def remove(self, key: K) -> None:
        with self._lock:
            if entry := self._entries.pop(key, None):
                self._bytes -= entry.size_bytes
                self._forget_places()

    def _enqueue(self, key: K, used: float) -> None:
        self._serial += 1  # so that keys themselves are never compared
        heapq.heappush(self._queue, (used, self._serial, key))

    def _forget_places(self) -> None:
        """Places of values that are gone are dropped, when they are the most, as ``_oldest`` may never come to them."""
        if len(self._queue) > 2 * len(self._entries) + 64:
            self._queue.clear()
            for key, entry in self._entries.items():
                self._enqueue(key, entry.used)

    def _evict(self, key: K) -> None:
        self._bytes -= self._entries.pop(key).size_bytes
        self._evicted += 1

    def _oldest(self) -> K:
        while True:
            queued, _, key = heapq.heappop(self._queue)
            entry = self._entries.get(key)
            if entry is None:
                continue
            if entry.used <= queued:
                return key
            self._enqueue(key, entry.used)
