"""Which records of a partition may be acknowledged: those that are written, up to the first that is not.

Pure. The consumer takes an acknowledged offset for all offsets before it (``faust_consumer``), so records have to be
acknowledged in offset order, while attempts end, and are written, in any order.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class OffsetTracker(Generic[T]):
    """The records of one partition that have been read and not acknowledged yet, oldest first."""

    def __init__(self) -> None:
        self._pending: OrderedDict[int, T] = OrderedDict()
        self._completed: set[int] = set()

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def oldest(self) -> int | None:
        """The first unacknowledged offset: it holds back all later ones. None where nothing is pending."""
        return next(iter(self._pending), None)

    def track(self, offset: int, record: T) -> bool:
        """Note a record that was read. False for one that is pending already, because it was read a second time.

        Offsets rise, and may skip: Kafka leaves gaps where records expired, were compacted or ended a transaction.
        """
        if offset in self._pending:
            return False
        # Appended and never sorted: within a partition records are read in offset order.
        self._pending[offset] = record
        return True

    def complete(self, offsets: Iterable[int]) -> list[T]:
        """Mark these as written; the records that may be acknowledged now, in offset order."""
        # An offset that is not pending was completed before: the same attempt may be written twice.
        self._completed.update(offset for offset in offsets if offset in self._pending)
        ready = []
        while self._pending and (first := next(iter(self._pending))) in self._completed:
            self._completed.remove(first)
            ready.append(self._pending.pop(first))
        return ready
