"""Disks of sources built into Kubernetes, which CSI drivers serve since those sources were removed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from engine.snapshot.selectors import NodeSelector, NodeSelectorTerm, Requirement
from engine.snapshot.volumes import CsiNode, Disk, PersistentVolume


@dataclass(frozen=True, slots=True)
class DiskMigration:
    """A source with the driver that serves it now."""

    plugin: str
    driver: str
    topology_key: str = ""
    """Node label by which the driver names zones, where volumes are translated to it."""
    is_counted: bool = True
    """True if volumes of the source count against the limit of the driver."""


MIGRATIONS: Final[Mapping[str, DiskMigration]] = {
    "awsElasticBlockStore": DiskMigration("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    "gcePersistentDisk": DiskMigration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "azureDisk": DiskMigration("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "cinder": DiskMigration(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    "portworxVolume": DiskMigration("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    "azureFile": DiskMigration("kubernetes.io/azure-file", "file.csi.azure.com", is_counted=False),
    "vsphereVolume": DiskMigration("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", is_counted=False),
}
"""By the field that holds the source in a volume."""
MIGRATIONS_BY_PLUGIN: Final = {migration.plugin: migration for migration in MIGRATIONS.values()}

_ZONE: Final = "topology.kubernetes.io/zone"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_SEPARATOR: Final = "__"


def find_counted_handle(disk: Disk, zones: str = "") -> tuple[str, str] | None:
    """Return driver and handle under which a disk counts on nodes with CSI drivers; None if it counts nowhere."""
    migration = MIGRATIONS.get(disk.source)
    if migration is None or not migration.is_counted:
        return None
    name = disk.name.rpartition("/")[2] if disk.source == "awsElasticBlockStore" else disk.name
    return migration.driver, f"{zones}/{name}" if zones else name


def derive_affinity(volume: PersistentVolume, csi_node: CsiNode | None) -> NodeSelector | None:
    """Return a volume's node affinity, with the driver's zone label where the node has migrated its source."""
    migration = MIGRATIONS.get(volume.disk.source) if volume.disk and not volume.csi_driver else None
    if migration is None or csi_node is None or migration.plugin not in csi_node.migrated_plugins:
        return volume.node_affinity
    if not migration.topology_key or not migration.is_counted:
        return volume.node_affinity
    return _translate(volume, migration.topology_key)


def _translate(volume: PersistentVolume, topology_key: str) -> NodeSelector | None:
    zone = _find_zone_label(volume)
    affinity = volume.node_affinity
    if affinity is not None and _has_values(affinity, zone):
        affinity = _rename(affinity, zone, topology_key)
    elif zone in volume.labels:
        zones = tuple(filter(None, (part.strip() for part in volume.labels[zone].split(ZONE_SEPARATOR))))
        affinity = _add(affinity, Requirement(topology_key, "In", zones)) if zones else affinity
    if affinity is not None and zone == _BETA_ZONE and _has_values(affinity, _BETA_REGION):
        affinity = _rename(affinity, _BETA_REGION, _REGION)
    return affinity


def _find_zone_label(volume: PersistentVolume) -> str:
    """Return the zone label that a volume uses: in its affinity, then on itself, the current one before the old."""
    for label in (_ZONE, _BETA_ZONE):
        if volume.node_affinity and any(
            requirement.key == label for term in volume.node_affinity.terms for requirement in term.expressions
        ):
            return label
    return _BETA_ZONE if _BETA_ZONE in volume.labels and _ZONE not in volume.labels else _ZONE


def _has_values(affinity: NodeSelector, key: str) -> bool:
    return any(
        requirement.key == key and requirement.values for term in affinity.terms for requirement in term.expressions
    )


def _rename(affinity: NodeSelector, key: str, renamed: str) -> NodeSelector:
    return NodeSelector(
        tuple(
            replace(
                term,
                expressions=tuple(
                    replace(requirement, key=renamed) if requirement.key == key else requirement
                    for requirement in term.expressions
                ),
            )
            for term in affinity.terms
        )
    )


def _add(affinity: NodeSelector | None, requirement: Requirement) -> NodeSelector:
    if affinity is None or not affinity.terms:
        return NodeSelector((NodeSelectorTerm((requirement,), ()),))
    return NodeSelector(tuple(replace(term, expressions=(*term.expressions, requirement)) for term in affinity.terms))
