"""The node that lacks least for a request now, and what it lacks. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import find_code
from schemas.events import Request

_PERCENT: Final = 100
_NO_DEVICE: Final = 2**62
"""Shortfall of a missing device, greater than any real one."""
_COLUMNS: Final = frozenset(
    ("is_healthy", "is_cordoned", "vendor", "total_memory", "used_memory", "total_cores", "used_cores")
)
_Ints = NDArray[np.int64]


class Lack(NamedTuple):
    """Shortfall of a node, summed over the requested number of its healthy devices, those with the most free."""

    memory_mib: int
    cores_percent: int
    node: str


def find_least_lacking(columns: ClusterColumns, nodes: Sequence[str], request: Request) -> Lack | None:
    """Find the node that lacks the least memory, then cores; None if no node has healthy devices of the vendor."""
    entries = [entry for node in nodes if (entry := columns.get_entry(node))]
    # Row 0 is no device and not healthy: it fills the places that a smaller node does not have.
    rows = np.zeros((len(entries), max((entry.size for entry in entries), default=0)), np.int64)
    for row, entry in zip(rows, entries, strict=True):
        row[: entry.size] = np.arange(entry.start, entry.start + entry.size)
    gathered = {name: column[rows] for name, column in columns.devices.column.items() if name in _COLUMNS}
    usable = gathered["is_healthy"] & ~gathered["is_cordoned"]
    if request.vendor:
        usable &= gathered["vendor"] == find_code(columns.vendors, request.vendor)
    wanted = request.memory_mib or gathered["total_memory"] * (request.memory_percent or _PERCENT) // _PERCENT
    memory = _sum_least(wanted - gathered["total_memory"] + gathered["used_memory"], usable, request.count)
    cores = _sum_least(request.cores_percent - gathered["total_cores"] + gathered["used_cores"], usable, request.count)
    shortfalls = zip(memory, cores, entries, usable.any(axis=1).tolist(), strict=True)
    return min(
        (Lack(mib, percent, entry.fragment.name) for mib, percent, entry, is_known in shortfalls if is_known),
        default=None,
    )


def _sum_least(lacking: _Ints, usable: NDArray[np.bool_], count: int) -> list[int]:
    """Sum for each node over the ``count`` usable devices that lack least."""
    shortfalls = np.sort(np.where(usable, np.maximum(lacking, 0), _NO_DEVICE), axis=1)[:, :count]
    sums: list[int] = np.where(shortfalls < _NO_DEVICE, shortfalls, 0).sum(axis=1).tolist()
    return sums
