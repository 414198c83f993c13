"""A cluster at one moment, indexed for judging pods on it. `reading` builds and changes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from engine.snapshot import kinds
from engine.snapshot.fields import Object, RejectedObject
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.selectors import Labels
from engine.snapshot.volumes import (
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeClaim,
)

Key = tuple[str, str]
"""Namespace and name; the namespace of what belongs to none is ""."""
Record = TypeVar("Record")

_NO_RECORDS: Final[Mapping[Key, Any]] = {}
_NO_LABELS: Final[Labels] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Every object of a cluster at one moment.

    Pods that have ended are left out, as kube-scheduler never sees them.
    """

    tables: Mapping[str, Mapping[Key, Any]]
    """By kind (`kinds`): records of the kinds that the filters read, plain objects of the others."""
    nodes: Mapping[str, NodeInfo]
    """By name, in the order of the input, with the pods that are bound to each node."""
    nominated: Mapping[str, tuple[Pod, ...]]
    """By node: waiting pods for which preemption has set the node apart."""
    attachments: Mapping[str, tuple[VolumeAttachment, ...]]
    """By node."""
    unread: frozenset[str]
    """Kinds of which some or all objects could not be read."""
    rejected: Mapping[tuple[str, str, str], RejectedObject]
    """Objects left out because of a malformed field, by kind, namespace and name."""

    def table(self, kind: str) -> Mapping[Key, Any]:
        """Return the objects of a kind by namespace and name."""
        return self.tables.get(kind, _NO_RECORDS)

    def missing_kinds(self, *needed: str) -> frozenset[str]:
        """Return which of the needed kinds could not be read."""
        return self.unread.intersection(needed)

    def pods(self) -> Mapping[Key, Pod]:
        """Return all pods that have not ended."""
        return cast("Mapping[Key, Pod]", self.table(kinds.POD))

    def namespace_labels(self, namespace: str) -> Labels:
        """Return the labels of a namespace; none for an unknown one."""
        return cast("Labels", self.table(kinds.NAMESPACE).get(("", namespace), _NO_LABELS))

    def namespaces(self) -> Mapping[Key, Labels]:
        """Return the labels of all namespaces."""
        return cast("Mapping[Key, Labels]", self.table(kinds.NAMESPACE))

    def volume_claim(self, namespace: str, name: str) -> VolumeClaim | None:
        """Return a PersistentVolumeClaim."""
        return cast("VolumeClaim | None", self.table(kinds.VOLUME_CLAIM).get((namespace, name)))

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a PersistentVolume."""
        return cast("PersistentVolume | None", self.table(kinds.VOLUME).get(("", name)))

    def volumes(self) -> Mapping[Key, PersistentVolume]:
        """Return all PersistentVolumes."""
        return cast("Mapping[Key, PersistentVolume]", self.table(kinds.VOLUME))

    def storage_class(self, name: str) -> StorageClass | None:
        """Return a StorageClass."""
        return cast("StorageClass | None", self.table(kinds.STORAGE_CLASS).get(("", name)))

    def csi_node(self, node: str) -> CsiNode | None:
        """Return the CSINode of a node."""
        return cast("CsiNode | None", self.table(kinds.CSI_NODE).get(("", node)))

    def csi_driver(self, name: str) -> CsiDriver | None:
        """Return a CSIDriver."""
        return cast("CsiDriver | None", self.table(kinds.CSI_DRIVER).get(("", name)))

    def storage_capacities(self) -> Mapping[Key, StorageCapacity]:
        """Return all CSIStorageCapacities."""
        return cast("Mapping[Key, StorageCapacity]", self.table(kinds.STORAGE_CAPACITY))

    def objects(self, kind: str) -> Mapping[Key, Object]:
        """Return the plain objects of a kind that the filters do not read."""
        return cast("Mapping[Key, Object]", self.table(kind))
