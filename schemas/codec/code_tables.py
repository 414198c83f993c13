"""Dictionary-encoded columns: merges tables so that each entry occurs once, and reduces one to the rows that use it."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..events import Refusal

Ints = npt.NDArray[np.int64]
T = TypeVar("T", bound=Hashable)


def merge_tables(tables: Sequence[Sequence[T]], columns: Sequence[Ints]) -> tuple[list[T], Ints]:
    """Merge tables into one with distinct entries, and re-code all columns to it, concatenated; -1 remains -1."""
    # Small clusters have one record of nodes, and its table holds each entry once.
    if len(tables) == 1 and len(set(tables[0])) == len(tables[0]):
        return list(tables[0]), columns[0]
    places: dict[T, int] = {}
    moved = []
    for table, column in zip(tables, columns, strict=True):
        moves = [places.setdefault(entry, len(places)) for entry in table]
        # The last entry of the translation is -1, so numpy's indexing from the end maps -1 to -1 without a mask.
        moved.append(np.array([*moves, -1], dtype=np.int64)[column])
    return list(places), np.concatenate(moved) if moved else np.empty(0, dtype=np.int64)


def merge_refusal_tables(tables: Sequence[Sequence[Refusal]], columns: Sequence[Ints]) -> tuple[list[Refusal], Ints]:
    """Merge tables of refusals: two are equal when their counts are, in any order."""
    by_key: dict[Hashable, Refusal] = {}
    keys = [[build_refusal_key(refusal) for refusal in table] for table in tables]
    for table, its_keys in zip(tables, keys, strict=True):
        # A ``Refusal`` holds a dict and can't be hashed; its key can.
        by_key |= dict(zip(its_keys, table, strict=True))
    distinct, column = merge_tables(keys, columns)
    return [by_key[key] for key in distinct], column


def build_refusal_key(refusal: Refusal) -> Hashable:
    """Build a key that is equal for two refusals with the same content."""
    counts = frozenset(refusal.counts.items())
    return counts, refusal.devices, refusal.bare, refusal.cause, tuple(refusal.uncounted)


def cut_refusals(refusals: Sequence[Refusal], column: Ints) -> tuple[list[Refusal], Ints]:
    """Select the refusals that occur in ``column``, and re-code the column to them; -1 remains -1."""
    # ``bincount`` takes no negative numbers, hence one up and one down again; it costs a tenth of ``np.unique``.
    used = np.flatnonzero(np.bincount(column + 1, minlength=1)) - 1
    used = used[used >= 0]
    # The last entry is for -1, which numpy reads as the last index.
    moved = np.full(len(refusals) + 1, -1, dtype=np.int64)
    moved[used] = np.arange(len(used))
    return [refusals[code] for code in used.tolist()], moved[column]
