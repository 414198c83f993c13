"""Which records may be acknowledged: those that are done, up to the first that is not.

The consumer takes the last record that was acknowledged for all before it (``app.RunConsumer``): it is told of records
in offset order only.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class OffsetTracker(Generic[T]):
    """The records of one partition that have been read and not acknowledged yet, oldest first."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, T] = OrderedDict()
        self._done: set[int] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest(self) -> int | None:
        """The first offset that holds back all behind it."""
        return next(iter(self._waiting), None)

    def read(self, offset: int, record: T) -> bool:
        """A record was read. False for one that was read before and is not done: it is being dealt with already.

        Offsets rise; gaps (expired or compacted records) are none of ours.
        """
        if offset in self._waiting:
            return False
        self._waiting[offset] = record
        return True

    def done(self, offsets: Iterable[int]) -> list[T]:
        """These are done. Gives the records that may be acknowledged now, in offset order."""
        self._done.update(offset for offset in offsets if offset in self._waiting)
        ready = []
        while self._waiting and (first := next(iter(self._waiting))) in self._done:
            self._done.remove(first)
            ready.append(self._waiting.pop(first))
        return ready
