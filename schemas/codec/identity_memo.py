"""What was made of the very same objects before: told by who they are, which costs nothing, not by what they say.

The records of a retry often say what those of the attempt before said, to the byte, and are read once: then the columns
of both are the same objects.
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
"""What is said of the nodes of an attempt, with the tables behind it; records of nodes and summaries both have them."""
_ENTRY_BYTES: Final = 500
_MOST_BYTES: Final = 8 * 1024 * 1024
"""Of a kind: fifteen attempts of 5,000 nodes."""


class Recent(Generic[K, T]):
    """What was used last, within about ``most_bytes``. For any thread."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
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
        """``size``: bytes that it takes in memory, about; what takes none still takes its place."""
        size += _ENTRY_BYTES
        with self._lock:
            _, before = self._known.pop(key, (None, 0))
            self._known[key] = known, size
            self._bytes += size - before
            while self._bytes > self._most:
                self._bytes -= self._known.popitem(last=False)[1][1]


class Same(Generic[T]):
    """Makes something once of the same objects, none of which may change. It keeps them as long as what it made."""

    def __init__(self, most_bytes: int) -> None:
        self._made: Recent[tuple[int, ...], tuple[Sequence[object], T]] = Recent(most_bytes)

    def of(self, objects: Sequence[object], size: int, make: Callable[[], T]) -> T:
        """What was made of these ``objects``, or is now. ``size``: bytes that it takes to keep it, about."""
        key = tuple(map(id, objects))
        if (found := self._made.find(key)) is not None:
            return found[1]
        made = make()
        self._made.remember(key, (objects, made), size)
        return made


def of_nodes(make: Callable[[AttemptSummarized], T]) -> Callable[[AttemptSummarized], T]:
    """For what follows from the ``NODE_COLUMNS`` of a summary alone: ``make`` is called once for the same columns."""
    made: Same[T] = Same(_MOST_BYTES)

    @wraps(make)
    def known_or_made(summary: AttemptSummarized) -> T:
        columns = [getattr(summary, name) for name in NODE_COLUMNS]
        return made.of(columns, column_bytes(len(summary.nodes), len(summary.refusals)), lambda: make(summary))

    return known_or_made


def column_bytes(nodes: int, refusals: int) -> int:
    """What the ``NODE_COLUMNS`` take in memory with what is made of them, about; names not counted."""
    return 1_000 + 100 * nodes + 400 * refusals
