"""A memo keyed by object identity: results for columns that are the same objects as last time, without hashing them.

The records of a retry often equal those of the attempt before byte for byte and are decoded once: then the columns of
both are the same objects.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from threading import Lock
from typing import Final, Generic, TypeVar

from schemas.events import AttemptSummarized

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

NODE_COLUMNS: Final = ("nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal")
"""The node columns of an attempt with their tables; records of nodes and summaries both have them."""
# The key, the tuple and the dictionary's slot; without it many small entries would exceed the bound unnoticed.
_ENTRY_BYTES: Final = 500
_MAX_BYTES: Final = 8 * 1024 * 1024
"""Per memo: enough for fifteen attempts of 5,000 nodes."""


class ByteBoundedLru(Generic[K, T]):
    """The entries used last, within about ``max_bytes``. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._known: OrderedDict[K, tuple[T, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, key: K) -> T | None:
        with self._lock:
            if (found := self._known.get(key)) is None:
                return None
            self._known.move_to_end(key)
            return found[0]

    def remember(self, key: K, known: T, size: int) -> None:
        """``size``: its bytes in memory, about; a fixed amount is added for the entry itself."""
        size += _ENTRY_BYTES
        with self._lock:
            _, before = self._known.pop(key, (None, 0))
            self._known[key] = known, size
            self._bytes += size - before
            while self._bytes > self._max_bytes:
                self._bytes -= self._known.popitem(last=False)[1][1]


class IdentityMemo(Generic[T]):
    """Computes a result once for the same objects, which must not change. It references them as long as the result,
    so that no other object can get their identity."""

    def __init__(self, max_bytes: int) -> None:
        self._made: ByteBoundedLru[tuple[int, ...], tuple[Sequence[object], T]] = ByteBoundedLru(max_bytes)

    def of(self, objects: Sequence[object], size: int, make: Callable[[], T]) -> T:
        """The result for these ``objects``, computed by ``make`` the first time; ``size``: its bytes, about."""
        # Hashing the content would cost about what the memo saves (decision 0016).
        key = tuple(map(id, objects))
        if (found := self._made.find(key)) is not None:
            return found[1]
        made = make()
        # Two threads may both compute it; the second result replaces the first and is equal to it.
        self._made.remember(key, (objects, made), size)
        return made


def of_nodes(make: Callable[[AttemptSummarized], T]) -> Callable[[AttemptSummarized], T]:
    """Decorator for a function of the ``NODE_COLUMNS`` of a summary alone: called once for the same columns."""
    made: IdentityMemo[T] = IdentityMemo(_MAX_BYTES)

    @wraps(make)
    def known_or_made(summary: AttemptSummarized) -> T:
        columns = [getattr(summary, name) for name in NODE_COLUMNS]
        return made.of(columns, column_bytes(len(summary.nodes), len(summary.refusals)), lambda: make(summary))

    return known_or_made


def column_bytes(nodes: int, refusals: int) -> int:
    """Bytes in memory of the ``NODE_COLUMNS`` and of what is derived from them, about; names not counted."""
    return 1_000 + 100 * nodes + 400 * refusals
