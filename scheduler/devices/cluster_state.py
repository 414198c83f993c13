"""The devices of the whole cluster as numpy columns, kept up to date by increments.

Each Kubernetes object that changes is applied once (`apply_*`, `delete_*`); a decision then reads the columns and never
counts pods. One writer at a time; no clock (times are arguments), no I/O.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hami.allocation import AllocationError
from hami.annotations import HANDSHAKE
from hami.handshake import allocatable_devices
from hami.node_registration import NodeDevices, combine, cordoned_devices, read_node
from hami.registration import Malformed, Registration
from hami.vendors import NVIDIA, ONLY_NVIDIA, Vendors, code_of, find_vendor
from scheduler.devices.column_table import Table
from scheduler.devices.fragment import NodeFragment
from scheduler.devices.node_entry import MIG_MODE, DeviceKind, NodeEntry, fragment_of
from scheduler.devices.pod_usage import PodUse, has_ended, is_leaving, pod_use
from scheduler.devices.quota import Quotas
from scheduler.devices.registration_step import LastLook, RegistrationStep, next_step

USED: Final = ("used_slots", "used_cores", "used_memory")
TOTAL: Final = ("total_slots", "total_cores", "total_memory")

_DEVICE_COLUMNS: Final = {
    **dict.fromkeys((*USED, *TOTAL, "numa", "index", "kind", "unsound"), np.int64),
    **dict.fromkeys(("is_healthy", "is_cordoned", "is_mig"), np.bool_),
    "vendor": np.uint8,  # code in the table of vendors; 0 is nobody's
}
_NODE_COLUMNS: Final = {**dict.fromkeys((*USED, *TOTAL, "start", "size"), np.int64), "has_mig": np.bool_}


class ClusterColumns:
    """See the module. `accepts_colon_form`: whether NVIDIA's annotation of HAMi <= v2.7 counts (v2.10 refuses it)."""

    def __init__(self, vendors: Vendors = ONLY_NVIDIA, *, accepts_colon_form: bool = True) -> None:
        self.vendors = vendors
        self._nvidia = find_vendor(vendors, NVIDIA.word) or NVIDIA
        self._nvidia_code = code_of(vendors, NVIDIA.word)
        self.devices = Table(_DEVICE_COLUMNS)
        self.nodes = Table({**_NODE_COLUMNS, **{countable(code): np.int64 for code in range(1, len(vendors) + 1)}})
        self.quotas = Quotas()
        self._nvidia_devices: dict[str, NodeDevices] = {}
        self._accepts_colon_form = accepts_colon_form
        self._ids: dict[str, int] = {}
        self._entries: dict[int, NodeEntry] = {}
        self._fragments: dict[int, NodeFragment] = {}
        self._last: dict[str, LastLook] = {}
        self._causes: dict[str, str] = {}
        self._kinds: dict[DeviceKind, int] = {}
        self._kind_list: tuple[DeviceKind, ...] = ()
        self._rows: dict[str, set[int]] = {}
        self._pods: dict[str, PodUse] = {}
        self._pods_on: dict[str, set[str]] = {}

    # Nodes

    def apply_node(self, node: Mapping[str, Any], now: datetime | None = None) -> None:
        """Add or replace a Kubernetes Node object (as decoded JSON).

        `now`: the scheduler's local time without a zone; with it, a node that leaves the handshake open is given up.
        A malformed annotation leaves what the node registered before, and says so in `unregistered_cause`.
        """
        metadata = _mapping(node.get("metadata"))
        name, annotations = str(metadata.get("name", "")), _mapping(metadata.get("annotations"))
        keys, allocatable = self._nvidia.node, allocatable_devices(node, self._nvidia.resources.count)
        last = self._last.get(name, LastLook())
        step = next_step(last, annotations, allocatable, now, keys)
        reading = read_node(node, self.vendors, now)
        nvidia = self._accepted(reading.nvidia)
        self._last[name] = LastLook(allocatable, None if step is RegistrationStep.DROP else last.register)
        if step is RegistrationStep.DROP:
            self._nvidia_devices.pop(name, None)
        if step is RegistrationStep.READ and isinstance(nvidia, NodeDevices):
            self._last[name] = LastLook(allocatable, annotations[keys.register])
            self._nvidia_devices[name] = nvidia
        self._register(name, combine(self._nvidia_devices.get(name), reading.others, self.vendors))
        self._explain(name, nvidia if isinstance(nvidia, Malformed) else reading.problem or nvidia, step)
        self._apply_cordon(name, annotations)

    def _accepted(self, nvidia: NodeDevices | Malformed | None) -> NodeDevices | Malformed | None:
        """NVIDIA's registration, unless it has a form that is switched off."""
        if isinstance(nvidia, NodeDevices) and nvidia.registration.form == "colon" and not self._accepts_colon_form:
            problem = "is in the form of HAMi up to v2.7, which is switched off here"
            return Malformed(self._nvidia.node.register, "", problem)
        return nvidia

    def _explain(self, name: str, found: NodeDevices | Malformed | None, step: RegistrationStep) -> None:
        if isinstance(found, Malformed):
            self._causes[name] = str(found)
        elif name in self._ids or found is None:
            self._causes.pop(name, None)
        else:
            why = (
                "no GPU is allocatable any more"
                if step is RegistrationStep.DROP
                else "its device plugin has not answered yet"
            )
            self._causes[name] = f"{why} (status.allocatable and annotation {HANDSHAKE})"

    def _register(self, name: str, found: NodeDevices | None) -> None:
        old = self._entries.get(self._ids.get(name, -1))
        if old and old.devices == found:
            return
        self._unregister(name)
        if found is None:
            return
        devices = found.registration.devices
        entry = NodeEntry(
            self.nodes.take(1), self.devices.take(len(devices)), found, fragment_of(name, found.registration), {}
        )
        for row, device in enumerate(devices, entry.start):
            entry.rows.setdefault(device.uuid, []).append(row)
            self._rows.setdefault(device.uuid, set()).add(row)
        self._ids[name], self._entries[entry.id], self._fragments[entry.id] = entry.id, entry, entry.fragment
        self._fill_devices(entry)
        self._fill_node(entry)
        for uid in self._pods_on.get(name, ()):
            self._count(entry, self._pods[uid], 1)

    def _fill_devices(self, entry: NodeEntry) -> None:
        block = slice(entry.start, entry.start + entry.size)
        devices, table = entry.devices.registration.devices, self.devices
        table["total_slots"][block] = [device.slots for device in devices]
        table["total_cores"][block] = [device.cores for device in devices]
        table["total_memory"][block] = [device.memory_mib for device in devices]
        table["numa"][block] = [device.numa for device in devices]
        # An index is a position on one machine; beyond 63 bits it only has to stay the largest.
        table["index"][block] = [min(device.index, 2**63 - 1) for device in devices]
        table["kind"][block] = [self._kind(DeviceKind.of(device)) for device in devices]
        table["is_healthy"][block] = [device.is_healthy for device in devices]
        table["vendor"][block] = entry.devices.vendors
        table["is_mig"][block] = [device.mode == MIG_MODE for device in devices]

    def _fill_node(self, entry: NodeEntry) -> None:
        block, table = slice(entry.start, entry.start + entry.size), self.nodes
        devices = entry.devices.registration.devices
        table["start"][entry.id], table["size"][entry.id] = entry.start, entry.size
        vendors = entry.devices.vendors
        for code in range(1, len(self.vendors) + 1):
            table[countable(code)][entry.id] = vendors.count(code)
        owned = zip(devices, vendors, strict=True)
        table["has_mig"][entry.id] = any(
            device.mode == MIG_MODE and code == self._nvidia_code for device, code in owned
        )
        for name in TOTAL:
            table[name][entry.id] = self.devices[name][block].sum()

    def _kind(self, kind: DeviceKind) -> int:
        code = self._kinds.setdefault(kind, len(self._kinds))
        if len(self._kind_list) != len(self._kinds):
            self._kind_list = tuple(self._kinds)
        return code

    def _apply_cordon(self, name: str, annotations: Mapping[str, Any]) -> None:
        entry = self._entries.get(self._ids.get(name, -1))
        if entry:
            out = cordoned_devices(annotations)
            block = slice(entry.start, entry.start + entry.size)
            self.devices["is_cordoned"][block] = [uuid in out for uuid in entry.fragment.uuids]

    def delete_node(self, name: str) -> None:
        """Forget a node. Its pods stay known, and count again if it comes back."""
        self._unregister(name)
        self._nvidia_devices.pop(name, None)
        self._last.pop(name, None)
        self._causes.pop(name, None)

    def _unregister(self, name: str) -> None:
        node_id = self._ids.pop(name, None)
        if node_id is not None:
            entry = self._entries.pop(node_id)
            del self._fragments[node_id]
            for uuid, rows in entry.rows.items():
                self._rows[uuid].difference_update(rows)
                if not self._rows[uuid]:
                    del self._rows[uuid]
            self.devices.give_back(entry.start, entry.size)
            self.nodes.give_back(node_id, 1)

    def unregistered_cause(self, name: str) -> str | None:
        """What is wrong with the node's registration, with annotation and place; None where nothing is.

        A node that simply has no register annotation has no cause. A registered node may have one too: what it
        registered before still counts, but its annotation now is broken.
        """
        return self._causes.get(name)

    @property
    def node_names(self) -> tuple[str, ...]:
        """The registered nodes."""
        return tuple(self._ids)

    def node_fragment(self, name: str) -> NodeFragment | None:
        entry = self.entry(name)
        return entry.fragment if entry else None

    def registration(self, name: str) -> Registration | None:
        """The devices that count for a node now; None while it is unregistered."""
        entry = self.entry(name)
        return entry.devices.registration if entry else None

    def entry(self, name: str) -> NodeEntry | None:
        return self._entries.get(self._ids.get(name, -1))

    def entries(self, ids: Iterable[int]) -> list[NodeEntry]:
        """The registered node behind each id."""
        return list(map(self._entries.__getitem__, ids))

    def fragments(self, ids: Iterable[int]) -> tuple[NodeFragment | None, ...]:
        """The fragment behind each id; None for -1."""
        return tuple(map(self._fragments.get, ids))

    def ids(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Node id per name, shape (names,); -1 where unregistered."""
        return np.fromiter(map(self._ids.get, names, repeat(-1)), np.int64, len(names))

    @property
    def kinds(self) -> tuple[DeviceKind, ...]:
        """What stands behind the column `kind`."""
        return self._kind_list

    def rows_of(self, uuids: Iterable[str]) -> list[int]:
        """Rows of the devices with these UUIDs, on whatever node."""
        return [row for uuid in uuids for row in self._rows.get(uuid, ())]

    # Pods

    def apply_pod(self, pod: Mapping[str, Any]) -> None:
        """Add or update a Kubernetes Pod object, known by its UID.

        Pods that ended hold nothing, and neither does one that was already being deleted when it was first seen (as
        with HAMi). A pod without `hami.io/vgpu-node` changes nothing: its reservation may be younger than this telling
        of it. Neither does one whose device annotation can't be read.
        """
        uid = _mapping(pod.get("metadata")).get("uid")
        if not isinstance(uid, str):
            return
        if has_ended(pod):
            self.delete_pod(uid)
            return
        if is_leaving(pod) and uid not in self._pods:
            return
        try:
            use = pod_use(pod, self.vendors, is_first_sight=uid not in self._pods)
        except AllocationError:
            return
        if use is not None:
            self.hold(uid, use)

    def hold(self, uid: str, use: PodUse) -> None:
        """Count what a pod holds, in place of whatever it held before."""
        before = self._pods.get(uid)
        if before == use:
            return
        if before:
            self.delete_pod(uid)
        self._pods[uid] = use
        self._pods_on.setdefault(use.node, set()).add(uid)
        self._tally(use, 1)

    def delete_pod(self, uid: str) -> None:
        """Free what a pod holds; unknown pods hold nothing."""
        use = self._pods.pop(uid, None)
        if use is None:
            return
        neighbours = self._pods_on[use.node]
        neighbours.discard(uid)
        if not neighbours:
            del self._pods_on[use.node]
        self._tally(use, -1)

    def pod_use(self, uid: str) -> PodUse | None:
        return self._pods.get(uid)

    def _tally(self, use: PodUse, sign: int) -> None:
        for vendor, (memory_mib, cores) in use.quota_use().items():
            self.quotas.add_use(use.namespace, vendor, sign * memory_mib, sign * cores)
        entry = self.entry(use.node)
        if entry:
            self._count(entry, use, sign)

    def _count(self, entry: NodeEntry, use: PodUse, sign: int) -> None:
        for uuid, share in use.by_uuid.items():
            for row in entry.rows.get(uuid, ()):
                amounts = (share.slots, share.cores, share.memory_mib)
                for name, amount in zip(USED, amounts, strict=True):
                    self.devices[name][row] += sign * amount
                    self.nodes[name][entry.id] += sign * amount
                self.devices["unsound"][row] += sign * entry.unsound(row, share)
                entry.place(row, share, sign)

    # Quotas

    def apply_quota(self, quota: Mapping[str, Any]) -> None:
        """Add or replace a Kubernetes ResourceQuota object."""
        self.quotas.apply(quota)

    def delete_quota(self, namespace: str, name: str) -> None:
        self.quotas.delete(namespace, name)


def countable(code: int) -> str:
    """The node column that says how many cards of the vendor with this code there are."""
    return f"countable_{code}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
