"""Volumes of pods, and the objects behind them, as far as kube-scheduler looks at them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from engine.snapshot.fields import (
    Object,
    read_bool,
    read_int32,
    read_items,
    read_labels,
    read_mapping,
    read_nanos,
    read_quantity,
    read_text,
    read_texts,
)
from engine.snapshot.quantity import NANO
from engine.snapshot.selectors import Labels, LabelSelector, NodeSelector, read_label_selector, read_node_selector

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"

_DISKS: Final[Mapping[str, str]] = {
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "rbd": "image",
    "iscsi": "iqn",
    "azureDisk": "diskURI",
    "azureFile": "shareName",
    "cinder": "volumeID",
    "portworxVolume": "volumeID",
    "vsphereVolume": "volumePath",
}
"""Field that identifies a volume, by the source built into Kubernetes."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A volume of a source built into Kubernetes (in-tree)."""

    source: str
    """Name of the field, such as ``gcePersistentDisk``."""
    name: str
    pool: str = ""
    monitors: frozenset[str] = frozenset()
    is_read_only: bool = False


@dataclass(frozen=True, slots=True)
class PodVolume:
    """A volume of a pod that is a claim or a disk."""

    name: str
    claim: str = ""
    """Name of the PersistentVolumeClaim; "" for a disk."""
    is_ephemeral: bool = False
    """True if the claim is made for the pod, with its name and the volume's."""
    disk: Disk | None = None

    @property
    def is_named_claim(self) -> bool:
        """True if the volume is a claim that the pod names, not one that is made for it."""
        return self.disk is None and not self.is_ephemeral


@dataclass(frozen=True, slots=True)
class ControllerReference:
    """The controller that an object belongs to."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A PersistentVolumeClaim."""

    namespace: str
    name: str
    uid: str
    phase: str
    storage_class: str
    volume: str
    """Name of the volume that the claim is bound to or wants; "" if any will do."""
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    request_nano: int | None
    """Requested storage in billionths of a byte; None if the claim requests none."""
    selector: LabelSelector | None
    selected_node: str | None
    is_bind_completed: bool
    is_deleted: bool
    controller: ControllerReference | None

    @property
    def is_bound(self) -> bool:
        """True if the binding to a volume is complete."""
        return bool(self.volume) and self.is_bind_completed


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """The claim that a volume is bound to or reserved for."""

    namespace: str
    name: str
    uid: str

    def names(self, claim: VolumeClaim) -> bool:
        """Return whether the reference is to a claim; without a UID, the name decides."""
        if (self.namespace, self.name) != (claim.namespace, claim.name):
            return False
        return not self.uid or self.uid == claim.uid


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A PersistentVolume."""

    name: str
    labels: Labels
    phase: str
    storage_class: str
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    capacity_nano: int
    node_affinity: NodeSelector | None
    claim: ClaimReference | None
    csi_driver: str
    csi_handle: str
    disk: Disk | None
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass. Each of the topologies is a set of labels with the values that are allowed."""

    name: str
    provisioner: str
    binding_mode: str
    topologies: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]


@dataclass(frozen=True, slots=True)
class CsiNode:
    """A CSINode: the CSI drivers of a node with the number of volumes that each can attach there."""

    name: str
    drivers: frozenset[str]
    limits: Mapping[str, int]
    migrated_plugins: frozenset[str]


@dataclass(frozen=True, slots=True)
class CsiDriver:
    """A CSIDriver."""

    name: str
    tracks_capacity: bool


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """A CSIStorageCapacity: what a class can still provision where the selector matches."""

    storage_class: str
    topology: LabelSelector
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A VolumeAttachment."""

    node: str
    driver: str
    volume: str


def read_pod_volumes(spec: Object, pod_name: str) -> tuple[PodVolume, ...]:
    """Read the volumes of a pod that are claims or disks, in the order of the pod."""
    if not spec.get("volumes"):
        return ()
    return tuple(_iterate_pod_volumes(spec, pod_name))


def _iterate_pod_volumes(spec: Object, pod_name: str) -> Iterator[PodVolume]:
    for location, volume in read_items(spec, "volumes", "spec"):
        name = read_text(volume, "name", location)
        if volume.get("persistentVolumeClaim") is not None:
            claim = read_mapping(volume, "persistentVolumeClaim", location)
            yield PodVolume(name, read_text(claim, "claimName", f"{location}.persistentVolumeClaim"))
        elif volume.get("ephemeral") is not None:
            yield PodVolume(name, f"{pod_name}-{name}", is_ephemeral=True)
        elif disk := _read_disk(volume, location):
            yield PodVolume(name, disk=disk)


def _read_disk(parent: Object, path: str) -> Disk | None:
    for source, key in _DISKS.items():
        if parent.get(source) is None:
            continue
        location = f"{path}.{source}"
        fields = read_mapping(parent, source, path)
        return Disk(
            source,
            read_text(fields, key, location),
            read_text(fields, "pool", location) if source == "rbd" else "",
            frozenset(read_texts(fields, "monitors", location)) if source == "rbd" else frozenset(),
            read_bool(fields, "readOnly", location),
        )
    return None


def read_claim(claim: Object) -> VolumeClaim:
    """Read a PersistentVolumeClaim."""
    metadata, spec = read_mapping(claim, "metadata"), read_mapping(claim, "spec")
    annotations = read_labels(metadata, "annotations", "metadata")
    requests = read_nanos(read_mapping(spec, "resources", "spec"), "requests", "spec.resources")
    return VolumeClaim(
        namespace=read_text(metadata, "namespace", "metadata"),
        name=read_text(metadata, "name", "metadata"),
        uid=read_text(metadata, "uid", "metadata"),
        phase=read_text(read_mapping(claim, "status"), "phase", "status"),
        storage_class=annotations.get(_CLASS_ANNOTATION, read_text(spec, "storageClassName", "spec")),
        volume=read_text(spec, "volumeName", "spec"),
        access_modes=read_texts(spec, "accessModes", "spec"),
        volume_mode=read_text(spec, "volumeMode", "spec") or "Filesystem",
        attributes_class=read_text(spec, "volumeAttributesClassName", "spec"),
        request_nano=requests.get("storage"),
        selector=read_label_selector(spec, "selector", "spec") if spec.get("selector") is not None else None,
        selected_node=annotations.get(_SELECTED_NODE),
        is_bind_completed=_BIND_COMPLETED in annotations,
        is_deleted=metadata.get("deletionTimestamp") is not None,
        controller=read_controller(metadata),
    )


def read_controller(metadata: Object) -> ControllerReference | None:
    """Read the owner that is the controller of an object."""
    for location, owner in read_items(metadata, "ownerReferences", "metadata"):
        if read_bool(owner, "controller", location):
            return ControllerReference(
                read_text(owner, "kind", location),
                read_text(owner, "name", location),
                read_text(owner, "uid", location),
            )
    return None


def read_volume(volume: Object) -> PersistentVolume:
    """Read a PersistentVolume."""
    metadata, spec = read_mapping(volume, "metadata"), read_mapping(volume, "spec")
    annotations = read_labels(metadata, "annotations", "metadata")
    csi = read_mapping(spec, "csi", "spec")
    return PersistentVolume(
        name=read_text(metadata, "name", "metadata"),
        labels=read_labels(metadata, "labels", "metadata"),
        phase=read_text(read_mapping(volume, "status"), "phase", "status"),
        storage_class=annotations.get(_CLASS_ANNOTATION, read_text(spec, "storageClassName", "spec")),
        access_modes=read_texts(spec, "accessModes", "spec"),
        volume_mode=read_text(spec, "volumeMode", "spec") or "Filesystem",
        attributes_class=read_text(spec, "volumeAttributesClassName", "spec"),
        capacity_nano=read_nanos(spec, "capacity", "spec").get("storage", 0),
        node_affinity=read_node_selector(read_mapping(spec, "nodeAffinity", "spec"), "required", "spec.nodeAffinity"),
        claim=_read_claim_reference(spec),
        csi_driver=read_text(csi, "driver", "spec.csi"),
        csi_handle=read_text(csi, "volumeHandle", "spec.csi"),
        disk=_read_disk(spec, "spec"),
        is_deleted=metadata.get("deletionTimestamp") is not None,
    )


def _read_claim_reference(spec: Object) -> ClaimReference | None:
    if spec.get("claimRef") is None:
        return None
    reference = read_mapping(spec, "claimRef", "spec")
    namespace, name, uid = (read_text(reference, key, "spec.claimRef") for key in ("namespace", "name", "uid"))
    return ClaimReference(namespace, name, uid)


def read_storage_class(storage_class: Object) -> StorageClass:
    """Read a StorageClass."""
    topologies = tuple(
        tuple(
            (read_text(label, "key", location), read_texts(label, "values", location))
            for location, label in read_items(term, "matchLabelExpressions", location)
        )
        for location, term in read_items(storage_class, "allowedTopologies")
    )
    return StorageClass(
        name=read_text(read_mapping(storage_class, "metadata"), "name", "metadata"),
        provisioner=read_text(storage_class, "provisioner"),
        binding_mode=read_text(storage_class, "volumeBindingMode") or "Immediate",
        topologies=topologies,
    )


def read_csi_node(csi_node: Object) -> CsiNode:
    """Read a CSINode."""
    metadata = read_mapping(csi_node, "metadata")
    drivers, limits = set(), {}
    for location, driver in read_items(read_mapping(csi_node, "spec"), "drivers", "spec"):
        name = read_text(driver, "name", location)
        drivers.add(name)
        allocatable = read_mapping(driver, "allocatable", location)
        if allocatable.get("count") is not None:
            limits[name] = read_int32(allocatable, "count", f"{location}.allocatable")
    plugins = read_labels(metadata, "annotations", "metadata").get(_MIGRATED_PLUGINS, "")
    return CsiNode(
        read_text(metadata, "name", "metadata"), frozenset(drivers), limits, frozenset(filter(None, plugins.split(",")))
    )


def read_csi_driver(driver: Object) -> CsiDriver:
    """Read a CSIDriver."""
    name = read_text(read_mapping(driver, "metadata"), "name", "metadata")
    return CsiDriver(name, read_bool(read_mapping(driver, "spec"), "storageCapacity", "spec"))


def read_storage_capacity(capacity: Object) -> StorageCapacity:
    """Read a CSIStorageCapacity; the largest single volume counts before the sum."""
    largest = read_quantity(capacity, "maximumVolumeSize")
    limit = read_quantity(capacity, "capacity") if largest is None else largest
    return StorageCapacity(
        read_text(capacity, "storageClassName"),
        read_label_selector(capacity, "nodeTopology"),
        None if limit is None else -(-limit // NANO),
    )


def read_volume_attachment(attachment: Object) -> VolumeAttachment:
    """Read a VolumeAttachment."""
    spec = read_mapping(attachment, "spec")
    source = read_mapping(spec, "source", "spec")
    return VolumeAttachment(
        read_text(spec, "nodeName", "spec"),
        read_text(spec, "attacher", "spec"),
        read_text(source, "persistentVolumeName", "spec.source"),
    )
