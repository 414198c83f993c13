"""What nodes lack for a request as they are now, and which of some lacks least. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fit.devices.cluster_state import ClusterColumns
from hami.vendors import code_of
from schemas.events import Request

_WHOLE: Final = 100


class Lack(NamedTuple):
    """Summed over as many of the node's devices as are asked for, those that have the most free."""

    memory_mib: int
    cores_percent: int
    node: str


def least_lacking(columns: ClusterColumns, nodes: Sequence[str], asked: Request) -> Lack | None:
    """The node that lacks the least memory, then cores; None where none of them is registered with such devices."""
    found = [lack for node in nodes if (lack := lack_of(columns, node, asked))]
    return min(found, default=None)


def lack_of(columns: ClusterColumns, node: str, asked: Request) -> Lack | None:
    """Of a node that is registered with healthy devices of the vendor; None of another one."""
    entry = columns.entry(node)
    if entry is None:
        return None
    block, devices = entry.rows_slice, columns.devices
    usable = devices["is_healthy"][block] & ~devices["is_cordoned"][block]
    if asked.vendor:
        usable &= devices["vendor"][block] == code_of(columns.vendors, asked.vendor)
    if not usable.any():
        return None
    total = devices["total_memory"][block][usable]
    wanted = asked.memory_mib or total * (asked.memory_percent or _WHOLE) // _WHOLE
    memory = wanted - (total - devices["used_memory"][block][usable])
    cores = asked.cores_percent - (devices["total_cores"][block] - devices["used_cores"][block])[usable]
    return Lack(_least(memory, asked.count), _least(cores, asked.count), node)


def _least(lacking: np.ndarray[tuple[int, ...], np.dtype[np.int64]], count: int) -> int:
    return int(np.sort(np.maximum(lacking, 0))[:count].sum())
