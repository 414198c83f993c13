"""A mapping that drops its oldest entries when it gets too large. Pure; for one thread."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _count_no_bytes(_: object) -> int:
    return 0


class BoundedCache(Generic[K, V]):
    """Values by key, at most ``max_entries`` of at most ``max_bytes`` together; None: without that bound.

    The oldest value is the one that was put longest ago; reading does not make a value younger. The cache drops a value
    of more than ``max_bytes`` at once.
    """

    def __init__(
        self,
        max_entries: int | None = None,
        max_bytes: int | None = None,
        size_of: Callable[[V], int] = _count_no_bytes,
    ) -> None:
        self._max_entries, self._max_bytes, self._size_of = max_entries, max_bytes, size_of
        # A plain dict looks for its first key among all that were removed before it.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0
        """Size of all values by ``size_of``."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys, oldest first."""
        return iter(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[0] if entry else None

    def put(self, key: K, value: V) -> None:
        """Put the value as the youngest, instead of an earlier one of the key."""
        # A dict keeps the order of a key that is assigned again: the value would stay as old as its key.
        self.pop(key)
        size = self._size_of(value)
        self._entries[key] = value, size
        self.bytes += size
        while self._is_too_large():
            self.pop(next(iter(self._entries)))

    def pop(self, key: K) -> V | None:
        """Remove the key and return its value; None without one."""
        value, size = self._entries.pop(key, (None, 0))
        self.bytes -= size
        return value

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0

    def _is_too_large(self) -> bool:
        return (self._max_entries is not None and len(self._entries) > self._max_entries) or (
            self._max_bytes is not None and self.bytes > self._max_bytes
        )
