"""Records of a partition that may be acknowledged: all published ones up to the first that is not.

Pure. The consumer takes an acknowledged offset for all offsets before it (``faust_app``), so records have to be
acknowledged in offset order, while attempts end, and are published, in any order. An attempt's records are acknowledged
together: after a restart all of them are read again or none, and what was published is recognized.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class OffsetTracker(Generic[T]):
    """The records of one partition that have been read and not acknowledged yet, oldest first."""

    def __init__(self) -> None:
        self._pending: OrderedDict[int, T] = OrderedDict()
        self._completed: dict[int, int] = {}
        """The last offset of its attempt, by published offset."""

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def oldest(self) -> int | None:
        """The first unacknowledged offset, which holds back all later ones; None if nothing is pending."""
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

    def complete(self, offsets: Sequence[int]) -> list[T]:
        """Mark these records, all that an attempt has, as published. Return the records that may be acknowledged now,
        in offset order."""
        # An offset that is not pending was completed before: the same attempt may be published twice.
        pending = [offset for offset in offsets if offset in self._pending]
        self._completed |= dict.fromkeys(pending, max(pending, default=0))
        ready = list(self._find_ready())
        for offset in ready:
            del self._completed[offset]
        return [self._pending.pop(offset) for offset in ready]

    def _find_ready(self) -> Sequence[int]:
        """Find the longest run of completed records, from the oldest on, that cuts no attempt in two."""
        run: list[int] = []
        length, reach = 0, -1
        for offset in self._pending:
            if offset not in self._completed:
                break
            run.append(offset)
            reach = max(reach, self._completed[offset])
            if reach <= offset:
                length = len(run)
        return run[:length]
