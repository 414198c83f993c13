"""Devices of many nodes next to each other, as matrices of shape (slots, nodes).

Slots come first so that every rule is a few operations on long rows, one per slot, over all nodes at once. Nodes with
fewer devices are padded with row 0 of the table; `valid` is False there, and for devices of other vendors than the
requested one. Nodes of very different sizes go into different batches, so that one huge node does not widen all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.node_columns import name_countable

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

# Nodes of up to 8 devices share one batch: each batch costs the same number of numpy calls, however small it is.
_NARROW = 8


@dataclass(slots=True)
class DeviceMatrix:
    """Devices of n nodes; all matrices are (slots, n) unless noted. One decision owns it and may change it."""

    nodes: Ints  # (n,) position among the offered nodes
    ids: Ints  # (n,) node ids in the cluster state
    size: Ints  # (n,) devices per node
    judged: Ints  # (n,) devices of the requested vendor, which alone are judged
    rows: Ints  # row in the device table
    valid: Bools
    is_healthy: Bools
    is_cordoned: Bools
    is_mig: Bools
    kind: Ints
    numa: Ints
    index: Ints
    unsound: Ints  # allocations that make it unknown what a MIG device has left
    total_slots: Ints
    total_cores: Ints
    total_memory: Ints
    used_slots: Ints
    used_cores: Ints
    used_memory: Ints

    def select(self, where: NDArray[Any]) -> Self:
        """Copy the nodes at a mask or index array `where`."""
        flat = {name: getattr(self, name)[where] for name in ("nodes", "ids", "size", "judged")}
        wide = {name: getattr(self, name)[:, where] for name in MATRICES}
        return replace(self, **flat, **wide)

    def switch_vendor(self, columns: ClusterColumns, vendor: int) -> Self:
        """Return these devices with their used columns, judged for another vendor (its number in the device table)."""
        valid = np.take(match_kinds(columns, vendor), self.kind) & (np.arange(len(self.rows))[:, None] < self.size)
        return replace(self, judged=columns.nodes[name_countable(vendor)][self.ids], valid=valid)

    def copy_use(self) -> Self:
        """Return these devices with copies of the used columns, which may be changed without changing these."""
        return replace(self, **{name: getattr(self, name).copy() for name in _USED})


_USED = ("used_slots", "used_cores", "used_memory")
_TAKEN_FROM_TABLE = (
    *("is_healthy", "is_cordoned", "is_mig", "kind", "numa", "index", "unsound"),
    *("total_slots", "total_cores", "total_memory"),
    *_USED,
)
MATRICES = ("rows", "valid", *_TAKEN_FROM_TABLE)


def build_batches(columns: ClusterColumns, ids: Ints, vendor: int = 1) -> Iterator[DeviceMatrix]:
    """Build batches of nodes of similar size from the registered ones among `ids` (shape (n,), -1: unregistered).

    vendor: number of the requested vendor in the device table; only its devices are valid.
    """
    offered = np.flatnonzero(ids >= 0)
    sizes = columns.nodes["size"][ids[offered]]
    if not offered.size:
        return
    # Nodes whose device counts round up to the same power of two share a batch: at most half of a row is padding.
    widths = np.maximum(np.ceil(np.log2(np.maximum(sizes, 1))), np.log2(_NARROW)).astype(np.int64)
    for width in np.unique(widths).tolist():
        among = offered[widths == width]
        yield _build_matrix(columns, among, ids[among], vendor)


def view_all_devices(columns: ClusterColumns, vendor: int) -> DeviceMatrix:
    """View every row of the device table as the one slot of a node: the columns themselves, not to be changed.

    nodes, ids, size and judged have no meaning here.
    """
    table = {name: column[: columns.devices.end] for name, column in columns.devices.column.items()}
    rows = np.arange(len(table["vendor"]))[None]
    none = np.zeros(0, np.int64)
    taken: dict[str, Any] = {name: table[name][None] for name in _TAKEN_FROM_TABLE}
    # Rows that no node has have no vendor.
    valid = np.take(match_kinds(columns, vendor), taken["kind"], mode="clip") & (table["vendor"][None] != 0)
    return DeviceMatrix(none, none, none, none, rows, valid, **taken)


def match_kinds(columns: ClusterColumns, vendor: int) -> Bools:
    """Mark the kinds of devices that are judged for a vendor, shape (kinds,)."""
    matching = columns.vendors[vendor - 1]
    return np.array([matching.matches(kind.model, kind.vendor) for kind in columns.kinds], np.bool_)


def _build_matrix(columns: ClusterColumns, nodes: Ints, ids: Ints, vendor: int) -> DeviceMatrix:
    start, size = columns.nodes["start"][ids], columns.nodes["size"][ids]
    slots = np.arange(int(size.max()))[:, None]
    rows = np.where(slots < size, start + slots, 0)
    taken: dict[str, Any] = {name: np.take(columns.devices[name], rows) for name in _TAKEN_FROM_TABLE}
    valid = np.take(match_kinds(columns, vendor), taken["kind"]) & (slots < size)
    return DeviceMatrix(nodes, ids, size, columns.nodes[name_countable(vendor)][ids], rows, valid, **taken)
