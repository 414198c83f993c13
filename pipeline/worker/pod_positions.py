"""Positions of pods' histories on one partition of their topic, in 40 bytes a pod.

The latest are in a dict. When it is full it becomes a stretch: arrays that are sorted by the hash of the key. When
there are several stretches they are merged into one.
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.worker.batch import HistoryKey

LATEST: Final = 4_096
"""Positions in the dict, which takes 300 bytes for each."""
STRETCHES: Final = 8
"""Stretches that are searched one after the other before they are merged."""
_SMALLEST, _GREATEST = -(2**63), 2**63 - 1


class PodPosition(NamedTuple):
    """Position of a pod's latest history, and how far that history has come."""

    offset: int
    published_until: int
    """The offset of decisions up to which it knows the pod's attempts."""
    began_us: int
    """Start of the latest attempt, in microseconds since 1970."""
    noted_ms: int
    """Time at which this process wrote or read it, in milliseconds of its steady clock."""

    @classmethod
    def build_of_nothing(cls, offset: int, noted_ms: int) -> "PodPosition":
        """Return the position of a record that says nothing about the pod: it is neither older nor newer than any."""
        return cls(offset, _GREATEST, _SMALLEST, noted_ms)

    def is_older_than(self, other: "PodPosition") -> bool:
        """Tell whether this history holds less than the other one, which was written before it."""
        # By both: where the topic of decisions was deleted and made again, its offsets begin at 0.
        return self.published_until < other.published_until and self.began_us <= other.began_us


class _Stretch(NamedTuple):
    hashes: NDArray[np.int64]
    """Hashes of the keys, which rise."""
    rows: NDArray[np.int64]
    """A ``PodPosition`` each."""


class PodPositions:
    """Positions by the hash of the pod's key: two of four million pods share one in one process of a million."""

    def __init__(self, stretches: Iterable[_Stretch] = ()) -> None:
        self._latest: dict[int, PodPosition] = {}
        self._stretches = [*stretches]
        self._forgotten_before_ms = 0

    def __len__(self) -> int:
        """Count the positions; a pod that was written again since the last merge counts more than once."""
        return len(self._latest) + sum(len(stretch.hashes) for stretch in self._stretches)

    def put(self, key: HistoryKey, position: PodPosition, forget_before_ms: int) -> None:
        """Note where the pod's history is now, and forget those that were noted before that time."""
        self._forgotten_before_ms = forget_before_ms
        self._latest[hash(key)] = position
        if len(self._latest) >= LATEST:
            self._stretches.append(_sort(list(self._latest), np.array(list(self._latest.values()), np.int64)))
            self._latest = {}
        if len(self._stretches) > STRETCHES:
            self._stretches = [_merge(self._stretches, forget_before_ms)]

    def find(self, keys: Sequence[HistoryKey]) -> dict[HistoryKey, PodPosition]:
        """Find the positions of these pods' histories."""
        hashes = np.array(list(map(hash, keys)), np.int64)
        positions: dict[HistoryKey, PodPosition] = {}
        for stretch in self._stretches:
            places = np.searchsorted(stretch.hashes, hashes).clip(max=len(stretch.hashes) - 1)
            for index in np.flatnonzero(stretch.hashes[places] == hashes).tolist():
                positions[keys[index]] = PodPosition(*stretch.rows[places[index]].tolist())
        for key in keys:
            if latest := self._latest.get(hash(key)):
                positions[key] = latest
        oldest = self._forgotten_before_ms
        return {key: position for key, position in positions.items() if position.noted_ms >= oldest}


class PositionsReader:
    """Collects the positions of a partition's records, in their order."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._rows = array("q")

    def add(self, key: HistoryKey, position: PodPosition) -> None:
        self._hashes.append(hash(key))
        self._rows.extend(position)

    def build(self) -> PodPositions:
        """Build the positions of the latest histories."""
        if not self._hashes:
            return PodPositions()
        stretch = _sort(self._hashes, np.frombuffer(self._rows, np.int64).reshape(-1, len(PodPosition._fields)))
        is_latest = np.append(stretch.hashes[1:] != stretch.hashes[:-1], True)
        for _, repeated in groupby(np.flatnonzero(~is_latest), lambda index: stretch.hashes[index]):
            indices = [*repeated]
            _fold(stretch.rows[indices[0] : indices[-1] + 2])
        return PodPositions([_Stretch(stretch.hashes[is_latest], stretch.rows[is_latest])])


def _fold(rows: NDArray[np.int64]) -> None:
    """Put the history of one pod that holds in place of the last one, in the order in which they were written."""
    latest, *others = (PodPosition(*row.tolist()) for row in rows)
    for position in others:
        # A worker that was stopped for longer than its session may write once more, behind the one that took over.
        if not position.is_older_than(latest):
            latest = position
    rows[-1] = latest


def _sort(hashes: Collection[int], rows: NDArray[np.int64]) -> _Stretch:
    """Sort positions by hash; those of one hash keep their order."""
    unsorted = np.array(hashes, np.int64)
    order = np.argsort(unsorted, kind="stable")
    return _Stretch(unsorted[order], rows[order])


def _merge(stretches: Sequence[_Stretch], forget_before_ms: int) -> _Stretch:
    """Merge stretches, of which the last one is the latest."""
    hashes = np.concatenate([stretch.hashes for stretch in stretches])
    order = np.argsort(hashes, kind="stable")
    hashes, rows = hashes[order], np.concatenate([stretch.rows for stretch in stretches])[order]
    is_kept = np.append(hashes[1:] != hashes[:-1], True) & (rows[:, -1] >= forget_before_ms)
    return _Stretch(hashes[is_kept], rows[is_kept])
