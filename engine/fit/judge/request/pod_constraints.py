"""What one pod requires of one vendor's devices, the same for all nodes of an attempt."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import Bools, DeviceMatrix
from engine.fit.devices.node_entry import NodeEntry
from engine.fit.devices.pod_usage import PodUse
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.request.pod_annotations import PodAnnotations
from engine.hami.mig import Placement
from engine.hami.vendors import ASKS_QUOTA, Vendor, find_code


class PodConstraints(NamedTuple):
    """The constraints of a pod on the devices of one vendor.

    code: the vendor's number in the device table. own: what the pod holds already; it is free for this attempt.
    accepts_row, shape (device rows,): whether the pod's UUID lists allow the device; None where the pod has none.
    one_by_one: evaluate every node one device at a time, which also yields the picks in their order.
    """

    columns: ClusterColumns
    vendor: Vendor
    code: int
    annotations: PodAnnotations
    quota_left: QuotaLeft
    own: PodUse | None
    accepts_kind: Bools  # (kinds,)
    is_bare_kind: Bools  # (kinds,) the model is exactly the vendor's word
    accepts_row: Bools | None
    one_by_one: bool = False

    @property
    def own_node(self) -> NodeEntry | None:
        """The node where the pod holds devices already; None where there is none or it is not registered."""
        return self.columns.entry(self.own.node) if self.own else None

    def accepts_uuid(self, matrix: DeviceMatrix) -> Bools | None:
        """Whether the pod's UUID lists allow each device, shape (slots, n); None where the pod has no list."""
        return None if self.accepts_row is None else self.accepts_row[matrix.rows]

    def classes(self, entry: NodeEntry, row: int) -> tuple[str, ...]:
        """Metax' classes of the pods on a device, without this pod's own."""
        found = list(entry.classes.get(row, ()))
        own = self.own
        is_mine = own and entry is self.own_node and entry.fragment.uuids[row - entry.start] in own.by_uuid
        if own and is_mine and own.app_class in found:
            found.remove(own.app_class)
        return tuple(found)

    def standing(self, entry: NodeEntry, row: int) -> list[Placement]:
        """The MIG instances on a device, without those that the pod itself holds."""
        held = list(entry.held.get(row, ()))
        share = self.own.by_uuid.get(entry.fragment.uuids[row - entry.start]) if self.own else None
        if share and entry is self.own_node:
            for _, placement in share.instances:
                if placement in held:
                    held.remove(placement)
        return held


def pod_constraints(
    columns: ClusterColumns, metadata: Mapping[str, Any], annotations: PodAnnotations, vendor: Vendor
) -> PodConstraints:
    """The constraints of a pod on one vendor's devices, from its metadata and annotations."""
    own = columns.pod_use(str(metadata.get("uid", "")))
    namespace = str(metadata.get("namespace", ""))
    quota_left = columns.quotas.left(namespace, vendor) if vendor.family in ASKS_QUOTA else QuotaLeft()
    if own and own.namespace == namespace:
        memory_mib, cores = own.quota_use().get(vendor.word, (0, 0))
        quota_left = QuotaLeft(quota_left.memory_mib + memory_mib, quota_left.cores + cores)
    kinds = columns.kinds
    return PodConstraints(
        columns,
        vendor,
        find_code(columns.vendors, vendor.word),
        annotations,
        quota_left,
        own,
        accepts_kind=np.array(
            [annotations.accepts_type(kind.model) and annotations.accepts_mode(kind.mode) for kind in kinds], bool
        ),
        is_bare_kind=np.array([kind.model == vendor.word for kind in kinds], bool),
        accepts_row=_accepts_row(columns, annotations),
    )


def _accepts_row(columns: ClusterColumns, annotations: PodAnnotations) -> Bools | None:
    if not annotations.names_uuids:
        return None
    accepts = np.full(len(columns.devices["kind"]), not annotations.use_uuids)
    accepts[columns.rows_of(annotations.use_uuids)] = True
    accepts[columns.rows_of(annotations.no_use_uuids)] = False
    return accepts


def give_back(constraints: PodConstraints, matrix: DeviceMatrix) -> None:
    """Subtract what the pod holds already from the used columns of its node, where that node is in `matrix`."""
    entry, own = constraints.own_node, constraints.own
    if entry is None or own is None:
        return
    for node in np.flatnonzero(matrix.ids == entry.id).tolist():
        for uuid, share in own.by_uuid.items():
            for row in entry.rows.get(uuid, ()):
                at = (row - entry.start, node)
                matrix.used_slots[at] -= share.slots
                matrix.used_cores[at] -= share.cores
                matrix.used_memory[at] -= share.memory_mib
        for row in entry.unsound_rows(own):
            matrix.unsound[row - entry.start, node] -= 1
