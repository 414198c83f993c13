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

    def get_table(self, kind: str) -> Mapping[Key, Any]:
        """Return the objects of a kind by namespace and name."""
        return self.tables.get(kind, _NO_RECORDS)

    def find_missing_kinds(self, *needed: str) -> frozenset[str]:
        """Return which of the needed kinds could not be read."""
        return self.unread.intersection(needed)

    @property
    def pods(self) -> Mapping[Key, Pod]:
        """Return all pods that have not ended."""
        return cast("Mapping[Key, Pod]", self.get_table(kinds.POD))

    def find_namespace_labels(self, namespace: str) -> Labels:
        """Return the labels of a namespace; none for an unknown one."""
        return cast("Labels", self.get_table(kinds.NAMESPACE).get(("", namespace), _NO_LABELS))

    @property
    def namespaces(self) -> Mapping[Key, Labels]:
        """Return the labels of all namespaces."""
        return cast("Mapping[Key, Labels]", self.get_table(kinds.NAMESPACE))

    def find_volume_claim(self, namespace: str, name: str) -> VolumeClaim | None:
        """Return a PersistentVolumeClaim."""
        return cast("VolumeClaim | None", self.get_table(kinds.VOLUME_CLAIM).get((namespace, name)))

    def find_volume(self, name: str) -> PersistentVolume | None:
        """Return a PersistentVolume."""
        return cast("PersistentVolume | None", self.get_table(kinds.VOLUME).get(("", name)))

    @property
    def volumes(self) -> Mapping[Key, PersistentVolume]:
        """Return all PersistentVolumes."""
        return cast("Mapping[Key, PersistentVolume]", self.get_table(kinds.VOLUME))

    def find_storage_class(self, name: str) -> StorageClass | None:
        """Return a StorageClass."""
        return cast("StorageClass | None", self.get_table(kinds.STORAGE_CLASS).get(("", name)))

    def find_csi_node(self, node: str) -> CsiNode | None:
        """Return the CSINode of a node."""
        return cast("CsiNode | None", self.get_table(kinds.CSI_NODE).get(("", node)))

    def find_csi_driver(self, name: str) -> CsiDriver | None:
        """Return a CSIDriver."""
        return cast("CsiDriver | None", self.get_table(kinds.CSI_DRIVER).get(("", name)))

    @property
    def storage_capacities(self) -> Mapping[Key, StorageCapacity]:
        """Return all CSIStorageCapacities."""
        return cast("Mapping[Key, StorageCapacity]", self.get_table(kinds.STORAGE_CAPACITY))

    def get_objects(self, kind: str) -> Mapping[Key, Object]:
        """Return the plain objects of a kind that the filters do not read."""
        return cast("Mapping[Key, Object]", self.get_table(kind))
