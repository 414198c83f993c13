"""Devices of the whole cluster as numpy columns, kept up to date by increments.

Each Kubernetes object that changes is applied once (`apply_*`, `delete_*`); a decision then reads the columns and does
not iterate over pods. One writer at a time; no clock (times are arguments), no I/O.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import compress, repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices import node_columns
from engine.fit.devices.node_columns import DeviceKinds
from engine.fit.devices.node_entry import NodeEntry, NodeFragment, RegisteredKind, build_fragment, select_marks
from engine.fit.devices.node_readings import NodeReadings
from engine.fit.devices.node_revisions import NodeRevisions
from engine.fit.devices.pod_usage import PodUse, has_ended, is_leaving, read_pod_use
from engine.fit.devices.quota import Quotas
from engine.hami.allocation import AllocationError
from engine.hami.go_values import to_mapping
from engine.hami.node_registration import NodeDevices, list_cordoned_devices
from engine.hami.registration import Registration
from engine.hami.vendors import NVIDIA, ONLY_NVIDIA, Vendors, find_code


class _Offer(NamedTuple):
    """Devices that a node offers, those of them that are cordoned, and its marks."""

    devices: NodeDevices | None
    cordoned: frozenset[str]
    marks: Mapping[str, str]


_NO_OFFER: Final = _Offer(None, frozenset(), {})


class _Withheld(NamedTuple):
    """Node that is kept out of decisions for this cause, and what it would offer."""

    cause: str
    offer: _Offer


class ClusterColumns:
    """Columns of the cluster's devices and nodes, and who holds them.

    accepts_colon_form: whether NVIDIA's annotation of HAMi <= v2.7 counts (v2.10 refuses it). reads_state: whether the
    objects are a cluster that a scheduler already serves, as a file describes it, and not what a scheduler sees at its
    start.
    """

    def __init__(
        self, vendors: Vendors = ONLY_NVIDIA, *, accepts_colon_form: bool = True, reads_state: bool = False
    ) -> None:
        self.vendors = vendors
        self._nvidia_code = find_code(vendors, NVIDIA.word)
        self.devices = node_columns.build_device_table()
        self.nodes = node_columns.build_node_table(len(vendors))
        self.revisions = NodeRevisions(self.nodes)
        self.quotas = Quotas()
        self.registration_changes = 0
        """Changes of registered devices so far: until the next one, ids of nodes and positions of devices mean the
        same."""
        self._readings = NodeReadings(vendors, accepts_colon_form=accepts_colon_form, reads_state=reads_state)
        self._ids: dict[str, int] = {}
        self._entries: dict[int, NodeEntry] = {}
        self._fragments: dict[int, NodeFragment] = {}
        self._fragments_are_lent = False
        self._withheld: dict[str, _Withheld] = {}
        self._kinds = DeviceKinds()
        self._rows: dict[str, set[int]] = {}
        self._pods: dict[str, PodUse] = {}
        self._pods_on: dict[str, set[str]] = {}

    # Nodes

    def apply_node(self, node: Mapping[str, Any], now: datetime | None = None) -> None:
        """Add or replace a Kubernetes Node object (as decoded JSON).

        now: the scheduler's local time without a zone; with it, a node that leaves the handshake open is dropped. Under
        a malformed annotation, what the node registered before still counts; `get_cause` has the cause.
        """
        metadata = to_mapping(node.get("metadata"))
        name = str(metadata.get("name", ""))
        annotations = to_mapping(metadata.get("annotations"))
        devices = self._readings.read(name, node, now)
        offer = _Offer(devices, list_cordoned_devices(annotations), select_marks(annotations))
        if withheld := self._withheld.get(name):
            self._store_withheld(name, withheld._replace(offer=offer))
        else:
            self._apply_offer(name, offer)

    def _apply_offer(self, name: str, offer: _Offer) -> None:
        self.register(name, offer.devices)
        # At every change of the node: HAMi overlooks a cordon while the registration is the same.
        self._apply_cordon(name, offer.cordoned)
        if (entry := self.get_entry(name)) and entry.marks != offer.marks:
            entry.marks = offer.marks
            self.revisions.advance(entry.id)

    def exclude_node(self, name: str, cause: str) -> None:
        """Keep the node out of decisions, as if it were not registered, until `return_node`. The node may be unknown
        yet. cause: why, for people."""
        before = self._withheld.get(name)
        offer = before.offer if before else self._read_offer(name)
        self._unregister(name)
        self._store_withheld(name, _Withheld(cause, offer))

    def _store_withheld(self, name: str, withheld: _Withheld) -> None:
        before = self.get_withheld_cause(name)
        self._withheld[name] = withheld
        # A reader of the states has to learn that the node is not one that registers nothing.
        if self.get_withheld_cause(name) != before:
            self.revisions.mark_unregistered(name)

    def _read_offer(self, name: str) -> _Offer:
        entry = self.get_entry(name)
        if entry is None:
            return _NO_OFFER
        cordoned = self.devices["is_cordoned"][entry.rows_slice].tolist()
        return _Offer(entry.devices, frozenset(compress(entry.fragment.uuids, cordoned)), entry.marks)

    def return_node(self, name: str) -> None:
        """Return a withheld node to decisions, as it is by now."""
        self._apply_offer(name, self._withheld.pop(name).offer)

    def get_withheld_cause(self, name: str) -> str:
        """Get why a node with devices is kept out of decisions; empty where it is not."""
        withheld = self._withheld.get(name)
        return withheld.cause if withheld and withheld.offer.devices else ""

    def count_withheld(self) -> int:
        """Count the nodes with devices that are kept out of decisions."""
        return sum(withheld.offer.devices is not None for withheld in self._withheld.values())

    def register(self, name: str, registered: NodeDevices | None) -> None:
        """Replace the devices of a node; None unregisters it."""
        old = self.get_entry(name)
        if old and old.devices == registered:  # most changes of a node (status, lock) leave its devices alone
            return
        self._unregister(name)
        if registered is None:
            return
        self.registration_changes += 1
        devices = registered.registration.devices
        entry = NodeEntry(
            self.nodes.take(1),
            self.devices.take(len(devices)),
            registered,
            build_fragment(name, registered.registration),
            {},
        )
        for row, device in enumerate(devices, entry.start):
            entry.rows.setdefault(device.uuid, []).append(row)
            self._rows.setdefault(device.uuid, set()).add(row)  # several nodes may register the same UUID
        self._ids[name], self._entries[entry.id] = entry.id, entry
        self._copy_lent_fragments()[entry.id] = entry.fragment
        self.revisions.begin(entry.id)
        node_columns.fill_device_rows(self.devices, entry, self._kinds, self.vendors)
        node_columns.fill_node_row(self.nodes, self.devices, entry, self.vendors, self._nvidia_code)
        for uid in self._pods_on.get(name, ()):  # pods may be known before their node, and outlast its registration
            node_columns.add_use(self.devices, self.nodes, entry, self._pods[uid], 1)

    def _apply_cordon(self, name: str, listed: frozenset[str]) -> None:
        entry = self.get_entry(name)
        if entry:
            cordoned = np.array([uuid in listed for uuid in entry.fragment.uuids], np.bool_)
            if not np.array_equal(self.devices["is_cordoned"][entry.rows_slice], cordoned):
                self.devices["is_cordoned"][entry.rows_slice] = cordoned
                self.revisions.advance(entry.id)

    def delete_node(self, name: str) -> None:
        """Forget a node. Its pods remain known, and count again if the node comes back."""
        self._unregister(name)
        self._readings.forget(name)
        if withheld := self._withheld.get(name):
            self._store_withheld(name, withheld._replace(offer=_NO_OFFER))

    def _unregister(self, name: str) -> None:
        node_id = self._ids.pop(name, None)
        if node_id is not None:
            self.registration_changes += 1
            entry = self._entries.pop(node_id)
            self.revisions.end(node_id, name)
            del self._copy_lent_fragments()[node_id]
            for uuid, rows in entry.rows.items():
                self._rows[uuid].difference_update(rows)
                if not self._rows[uuid]:
                    del self._rows[uuid]
            self.devices.give_back(entry.start, entry.size)
            self.nodes.give_back(node_id, 1)

    def get_cause(self, name: str) -> str | None:
        """Get the mistake in the node's registration, with annotation and position; None where there is none.

        A node without a register annotation has no cause. A registered node may have one: what it registered before
        still counts, but its annotation is broken now.
        """
        return self._readings.get_cause(name)

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the registered nodes."""
        return tuple(self._ids)

    def get_fragment(self, name: str) -> NodeFragment | None:
        entry = self.get_entry(name)
        return entry.fragment if entry else None

    def get_registration(self, name: str) -> Registration | None:
        """Get the devices that count for a node now, also of a withheld one; None while it is unregistered."""
        entry, withheld = self.get_entry(name), self._withheld.get(name)
        devices = withheld.offer.devices if withheld else entry.devices if entry else None
        return devices.registration if devices else None

    def get_entry(self, name: str) -> NodeEntry | None:
        return self._entries.get(self._ids.get(name, -1))  # ids begin at 1: row 0 of a table is never given out

    def get_entries(self, ids: Iterable[int]) -> list[NodeEntry]:
        """Get the registered node of each id."""
        return list(map(self._entries.__getitem__, ids))

    def lend_fragments(self) -> Mapping[int, NodeFragment]:
        """Lend the fragment of every registered node, by id; later registrations do not change the borrowed mapping."""
        self._fragments_are_lent = True
        return self._fragments

    def _copy_lent_fragments(self) -> dict[int, NodeFragment]:
        # Copied at the first change after a decision, so that neither decisions nor a start with thousands of nodes
        # copy them each time.
        if self._fragments_are_lent:
            self._fragments, self._fragments_are_lent = dict(self._fragments), False
        return self._fragments

    def look_up_ids(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Look up the node id of each name, shape (names,); -1 where unregistered."""
        # Without a Python frame per name: kube-scheduler offers the nodes in a new order each time.
        return np.fromiter(map(self._ids.get, names, repeat(-1)), np.int64, len(names))

    @property
    def kinds(self) -> tuple[RegisteredKind, ...]:
        """Kinds of devices, by the numbers in the column `kind`."""
        return self._kinds.all

    def find_rows(self, uuids: Iterable[str]) -> list[int]:
        """Find the rows of the devices with these UUIDs, on any node."""
        return [row for uuid in uuids for row in self._rows.get(uuid, ())]

    # Pods

    def apply_pod(self, pod: Mapping[str, Any]) -> None:
        """Add or update a Kubernetes Pod object, known by its UID.

        A pod that ended holds nothing; as with HAMi, neither does a pod that was already being deleted when it was
        first seen. A pod without `hami.io/vgpu-node` changes nothing, since its reservation may be newer than this
        observation, and neither does one whose device annotation can't be read.
        """
        uid = to_mapping(pod.get("metadata")).get("uid")
        if not isinstance(uid, str):
            return
        if has_ended(pod):
            self.delete_pod(uid)
            return
        if is_leaving(pod) and uid not in self._pods:
            return
        try:
            use = read_pod_use(pod, self.vendors, is_first_sight=uid not in self._pods)
        except AllocationError:
            return
        if use is not None:
            self.hold(uid, use)

    def hold(self, uid: str, use: PodUse) -> None:
        """Count what a pod holds, in place of whatever it held before."""
        before = self._pods.get(uid)
        if before == use:  # the watch brings back what the reservation has counted already
            return
        if before:
            self.delete_pod(uid)
        self._pods[uid] = use
        self._pods_on.setdefault(use.node, set()).add(uid)
        self._count_use(use, 1)

    def delete_pod(self, uid: str) -> None:
        """Free what a pod holds; unknown pods hold nothing."""
        use = self._pods.pop(uid, None)
        if use is None:
            return
        neighbours = self._pods_on[use.node]
        neighbours.discard(uid)
        if not neighbours:
            del self._pods_on[use.node]
        self._count_use(use, -1)

    def get_pod_use(self, uid: str) -> PodUse | None:
        return self._pods.get(uid)

    def list_pod_uses(self) -> list[PodUse]:
        """List the use of each pod, as a copy for another thread."""
        return list(self._pods.values())

    def _count_use(self, use: PodUse, sign: int) -> None:
        for vendor, (memory_mib, cores) in use.sum_quota_use().items():  # also while the node is unregistered
            self.quotas.add_use(use.namespace, vendor, sign * memory_mib, sign * cores)
        entry = self.get_entry(use.node)
        if entry:
            node_columns.add_use(self.devices, self.nodes, entry, use, sign)
            self.revisions.advance(entry.id)

    # Quotas

    def apply_quota(self, quota: Mapping[str, Any]) -> None:
        """Add or replace a Kubernetes ResourceQuota object."""
        self.quotas.apply(quota)

    def delete_quota(self, namespace: str, name: str) -> None:
        self.quotas.delete(namespace, name)
