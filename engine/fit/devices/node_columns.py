"""Columns of the device table and the node table, and how a registered node fills its rows of them."""

from collections import Counter
from typing import Final

import numpy as np

from engine.fit.devices.column_table import Table
from engine.fit.devices.node_entry import MIG_MODE, NodeEntry, RegisteredKind
from engine.fit.devices.pod_usage import PodUse
from engine.hami.vendors import Vendors

USED: Final = ("used_slots", "used_cores", "used_memory")
TOTAL: Final = ("total_slots", "total_cores", "total_memory")

_INT64_MAX: Final = 2**63 - 1


def build_device_table() -> Table:
    """Build an empty table with a row per device. vendor: number in the table of vendors; 0 for an unknown vendor."""
    return Table(
        {
            **dict.fromkeys((*USED, *TOTAL, "numa", "index", "kind", "unsound"), np.int64),
            **dict.fromkeys(("is_healthy", "is_cordoned", "is_mig"), np.bool_),
            "vendor": np.uint8,
        }
    )


def build_node_table(vendors: int) -> Table:
    """Build an empty table with a row per node.

    Its columns: sums over the node's devices, its block in the device table, counts by vendor, and what `NodeRevisions`
    keeps there. written_at: microseconds since 1970, 0 for never.
    """
    return Table(
        {
            **dict.fromkeys((*USED, *TOTAL, "start", "size", "revision", "published", "written_at"), np.int64),
            "has_mig": np.bool_,
            **{name_countable(code): np.int64 for code in range(1, vendors + 1)},
        }
    )


def name_countable(code: int) -> str:
    """Name the node column with the number of devices of the vendor with this number."""
    return f"countable_{code}"


class DeviceKinds:
    """Distinct kinds of devices, numbered in the order in which they were first seen; none is ever removed."""

    def __init__(self) -> None:
        self._codes: dict[RegisteredKind, int] = {}
        self.all: tuple[RegisteredKind, ...] = ()
        """Kinds by number. A new tuple whenever a kind is added, so that a decision keeps its own table."""

    def assign_number(self, kind: RegisteredKind) -> int:
        """Assign a number to a new kind, or return that of a known one."""
        code = self._codes.setdefault(kind, len(self._codes))
        if len(self.all) != len(self._codes):
            self.all = tuple(self._codes)
        return code


def fill_device_rows(table: Table, entry: NodeEntry, kinds: DeviceKinds, vendors: Vendors) -> None:
    """Write what the node registered into its block of the device table."""
    block = entry.rows_slice
    devices = entry.devices.registration.devices
    table["total_slots"][block] = [device.slots for device in devices]
    table["total_cores"][block] = [device.cores for device in devices]
    table["total_memory"][block] = [device.memory_mib for device in devices]
    table["numa"][block] = [device.numa for device in devices]
    # The index only orders the devices of one node; where it exceeds 63 bits, it only has to remain the largest.
    table["index"][block] = [min(device.index, _INT64_MAX) for device in devices]
    # Code 0 is no vendor.
    words = ("", *(vendor.word for vendor in vendors))
    owned = zip(devices, entry.devices.vendors, strict=True)
    table["kind"][block] = [kinds.assign_number(RegisteredKind.classify(device, words[code])) for device, code in owned]
    table["is_healthy"][block] = [device.is_healthy for device in devices]
    table["vendor"][block] = entry.devices.vendors
    table["is_mig"][block] = [device.mode == MIG_MODE for device in devices]


def fill_node_row(table: Table, devices: Table, entry: NodeEntry, vendors: Vendors, nvidia: int) -> None:
    """Write the sums over a node's devices into its row of the node table. nvidia: NVIDIA's number, which has MIG."""
    block = entry.rows_slice
    table["start"][entry.id], table["size"][entry.id] = entry.start, entry.size
    codes = entry.devices.vendors
    words = ("", *(vendor.word for vendor in vendors))
    owned = list(zip(entry.devices.registration.devices, codes, strict=True))
    kinds = Counter((device.model, words[code]) for device, code in owned)
    for code, vendor in enumerate(vendors, 1):
        # By vendor, since the Y of HAMi's `X/Y Reason` counts devices of the requested vendor only.
        counted = sum(count for (model, registered_by), count in kinds.items() if vendor.matches(model, registered_by))
        table[name_countable(code)][entry.id] = counted
    # These nodes are judged device by device: one MIG device may give several instances.
    table["has_mig"][entry.id] = any(device.mode == MIG_MODE and code == nvidia for device, code in owned)
    for name in TOTAL:
        table[name][entry.id] = devices[name][block].sum()


def add_use(devices: Table, nodes: Table, entry: NodeEntry, use: PodUse, sign: int) -> None:
    """Add what a pod holds on its node to the used columns of both tables (sign 1), or subtract it (sign -1)."""
    for uuid, share in use.by_uuid.items():
        for row in entry.rows.get(uuid, ()):
            amounts = (share.slots, share.cores, share.memory_mib)
            for name, amount in zip(USED, amounts, strict=True):
                devices[name][row] += sign * amount
                # Sums by node are kept as well, so that a node's score reads one row and not its devices.
                nodes[name][entry.id] += sign * amount
            entry.update_instances(row, share, sign)
            entry.update_classes(row, use.app_class, sign)
    for row in entry.find_unsound_rows(use):
        devices["unsound"][row] += sign
