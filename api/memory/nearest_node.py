"""Which of some nodes lacks least for a request as they are now, and what it lacks. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import find_code
from schemas.events import Request

_WHOLE: Final = 100
_NO_DEVICE: Final = 2**62
"""Behind whatever a device lacks."""
_COLUMNS: Final = frozenset(
    ("is_healthy", "is_cordoned", "vendor", "total_memory", "used_memory", "total_cores", "used_cores")
)
_Ints = NDArray[np.int64]


class Lack(NamedTuple):
    """Summed over as many of the node's healthy devices as are asked for, those that have the most free."""

    memory_mib: int
    cores_percent: int
    node: str


def least_lacking(columns: ClusterColumns, nodes: Sequence[str], asked: Request) -> Lack | None:
    """The node that lacks the least memory, then cores; None where none of them has healthy devices of the vendor."""
    entries = [entry for node in nodes if (entry := columns.entry(node))]
    # Row 0 is no device, and not healthy: it stands for those that a smaller node does not have.
    rows = np.zeros((len(entries), max((entry.size for entry in entries), default=0)), np.int64)
    for row, entry in zip(rows, entries, strict=True):
        row[: entry.size] = np.arange(entry.start, entry.start + entry.size)
    of = {name: column[rows] for name, column in columns.devices.column.items() if name in _COLUMNS}
    usable = of["is_healthy"] & ~of["is_cordoned"]
    if asked.vendor:
        usable &= of["vendor"] == find_code(columns.vendors, asked.vendor)
    wanted = asked.memory_mib or of["total_memory"] * (asked.memory_percent or _WHOLE) // _WHOLE
    memory = _least(wanted - of["total_memory"] + of["used_memory"], usable, asked.count)
    cores = _least(asked.cores_percent - of["total_cores"] + of["used_cores"], usable, asked.count)
    known = zip(memory, cores, entries, usable.any(axis=1).tolist(), strict=True)
    return min(
        (Lack(mib, percent, entry.fragment.name) for mib, percent, entry, is_known in known if is_known), default=None
    )


def _least(lacking: _Ints, usable: NDArray[np.bool_], count: int) -> list[int]:
    """For each node the sum over the ``count`` usable devices that lack least."""
    shortfalls = np.sort(np.where(usable, np.maximum(lacking, 0), _NO_DEVICE), axis=1)[:, :count]
    sums: list[int] = np.where(shortfalls < _NO_DEVICE, shortfalls, 0).sum(axis=1).tolist()
    return sums
