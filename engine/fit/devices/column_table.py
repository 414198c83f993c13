"""Growable numpy columns: one row per device or node, in blocks that are given back and used again."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Table:
    """Parallel columns of one length. Row 0 is never allocated: it stands for "no row" in padded index matrices."""

    def __init__(self, columns: Mapping[str, DTypeLike]) -> None:
        self.column: dict[str, NDArray[Any]] = {name: np.zeros(16, dtype) for name, dtype in columns.items()}
        self.end = 1
        """Row after the last one that was ever taken."""
        self._free: dict[int, list[int]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.column[name]

    def take(self, size: int) -> int:
        """Take a block of `size` zeroed rows, and return its first row."""
        blocks = self._free.get(size)
        start = blocks.pop() if blocks else self._append(size)
        for column in self.column.values():
            # A block that was given back still has the numbers of its former node.
            column[start : start + size] = 0
        return start

    def _append(self, size: int) -> int:
        start, self.end = self.end, self.end + size
        capacity = len(next(iter(self.column.values())))
        if self.end > capacity:
            # Doubled, so that n rows cost a number of copies in proportion to n.
            self._grow(max(self.end, capacity * 2))
        return start

    def _grow(self, capacity: int) -> None:
        for name, column in self.column.items():
            grown = np.zeros(capacity, column.dtype)
            grown[: len(column)] = column
            self.column[name] = grown

    def give_back(self, start: int, size: int) -> None:
        if size:
            # By exact size, so that blocks are neither split nor joined.
            self._free.setdefault(size, []).append(start)
