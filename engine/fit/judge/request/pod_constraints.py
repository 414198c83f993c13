"""Requirements of one pod of one vendor's devices, the same for all nodes of an attempt."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import Bools, DeviceMatrix
from engine.fit.devices.node_entry import NodeEntry, RegisteredKind
from engine.fit.devices.pod_usage import PodUse
from engine.fit.devices.quota import QuotaLeft
from engine.fit.judge.request.pod_annotations import PodAnnotations
from engine.hami.mig import Placement
from engine.hami.vendors import ASKS_QUOTA, Vendor, find_code


class PodConstraints(NamedTuple):
    """Constraints of a pod on the devices of one vendor.

    code: the vendor's number in the device table. held: what the pod holds already; it is free for this attempt.
    accepts_row, shape (device rows,): whether the pod's UUID lists allow the device; None where the pod has none.
    one_by_one: evaluate every node one device at a time, which also yields the picks in their order.
    """

    columns: ClusterColumns
    vendor: Vendor
    code: int
    annotations: PodAnnotations
    quota_left: QuotaLeft
    held: PodUse | None
    accepts_kind: Bools  # (kinds,)
    counts_request: Bools  # (kinds,) the request counts in the scores of such devices
    accepts_row: Bools | None
    one_by_one: bool = False

    @property
    def held_node(self) -> NodeEntry | None:
        """Node where the pod holds devices already; None where there is none or it is not registered."""
        return self.columns.get_entry(self.held.node) if self.held else None

    def match_uuids(self, matrix: DeviceMatrix) -> Bools | None:
        """Match each device with the pod's UUID lists, shape (slots, n); None where the pod has no list."""
        return None if self.accepts_row is None else self.accepts_row[matrix.rows]

    def list_classes(self, entry: NodeEntry, row: int) -> tuple[str, ...]:
        """List Metax' classes of the pods on a device, without this pod's own."""
        classes = list(entry.classes.get(row, ()))
        held = self.held
        has_device = held and entry is self.held_node and entry.fragment.uuids[row - entry.start] in held.by_uuid
        if held and has_device and held.app_class in classes:
            classes.remove(held.app_class)
        return tuple(classes)

    def list_standing(self, entry: NodeEntry, row: int) -> list[Placement]:
        """List the MIG instances on a device, without those that the pod itself holds."""
        placements = list(entry.held.get(row, ()))
        share = self.held.by_uuid.get(entry.fragment.uuids[row - entry.start]) if self.held else None
        if share and entry is self.held_node:
            for _, placement in share.instances:
                if placement in placements:
                    placements.remove(placement)
        return placements


def build_constraints(
    columns: ClusterColumns, metadata: Mapping[str, Any], annotations: PodAnnotations, vendor: Vendor
) -> PodConstraints:
    """Build the constraints of a pod on one vendor's devices, from its metadata and annotations."""
    held = columns.get_pod_use(str(metadata.get("uid", "")))
    namespace = str(metadata.get("namespace", ""))
    quota_left = columns.quotas.compute_left(namespace, vendor) if vendor.family in ASKS_QUOTA else QuotaLeft()
    if held and held.namespace == namespace:
        memory_mib, cores = held.sum_quota_use().get(vendor.word, (0, 0))
        quota_left = QuotaLeft(quota_left.memory_mib + memory_mib, quota_left.cores + cores)
    kinds = columns.kinds
    return PodConstraints(
        columns,
        vendor,
        find_code(columns.vendors, vendor.word),
        annotations,
        quota_left,
        held,
        accepts_kind=np.array(
            [annotations.accepts_type(kind.model) and annotations.accepts_mode(kind.mode) for kind in kinds], bool
        ),
        counts_request=np.array([_counts_request(kind, vendor) for kind in kinds], bool),
        accepts_row=_match_rows(columns, annotations),
    )


def _counts_request(kind: RegisteredKind, vendor: Vendor) -> bool:
    """Tell whether HAMi counts the request in a device's score: up to v2.10 only where the model is just the vendor's
    word, which no plugin registers."""
    return vendor.matches(kind.model, kind.vendor) if vendor.rules.scores_requests else kind.model == vendor.word


def _match_rows(columns: ClusterColumns, annotations: PodAnnotations) -> Bools | None:
    if not annotations.names_uuids:
        return None
    accepts = np.full(len(columns.devices["kind"]), not annotations.use_uuids)
    accepts[columns.find_rows(annotations.use_uuids)] = True
    accepts[columns.find_rows(annotations.no_use_uuids)] = False
    return accepts


def give_back(constraints: PodConstraints, matrix: DeviceMatrix) -> None:
    """Subtract what the pod holds already from the used columns of its node, where that node is in `matrix`."""
    entry, held = constraints.held_node, constraints.held
    if entry is None or held is None:
        return
    for node in np.flatnonzero(matrix.ids == entry.id).tolist():
        for uuid, share in held.by_uuid.items():
            for row in entry.rows.get(uuid, ()):
                cell = (row - entry.start, node)
                matrix.used_slots[cell] -= share.slots
                matrix.used_cores[cell] -= share.cores
                matrix.used_memory[cell] -= share.memory_mib
        for row in entry.find_unsound_rows(held):
            matrix.unsound[row - entry.start, node] -= 1
