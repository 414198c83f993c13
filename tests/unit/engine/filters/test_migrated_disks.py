"""Volumes of sources that CSI drivers serve now, by the rules of Kubernetes' csi-translation-lib."""

from typing import Any

import pytest

from engine.filters.migrated_disks import derive_affinity, find_counted_handle
from engine.snapshot.volumes import Disk, read_csi_node, read_volume

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
GKE = "topology.gke.io/zone"
GCE_DISK = {"gcePersistentDisk": {"pdName": "d"}}
ALL_MIGRATED = "kubernetes.io/gce-pd,kubernetes.io/azure-disk"


def a_volume(
    source: dict[str, Any], labels: dict[str, str] | None = None, affinity: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    if affinity is not None:
        expressions = [{"key": key, "operator": "In", "values": values} for key, values in affinity.items()]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return {"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}


def reaches(volume: dict[str, Any], labels: dict[str, str], migrated: str | None = ALL_MIGRATED) -> bool:
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
    csi_node = {"metadata": {"name": "n1", "annotations": annotations}, "spec": {"drivers": []}}
    affinity = derive_affinity(read_volume(volume), None if migrated is None else read_csi_node(csi_node))
    return affinity is None or affinity.matches(labels)


@pytest.mark.parametrize(
    ("labels", "affinity", "node", "is_reached"),
    [
        # A zone in the volume's affinity is that of the driver.
        ({}, {ZONE: ["a"]}, {GKE: "a"}, True),
        ({}, {ZONE: ["a"]}, {ZONE: "a"}, False),
        ({}, {BETA_ZONE: ["a"]}, {GKE: "a"}, True),
        # With the old zone, the region changes its name too; with the current one it keeps it.
        ({}, {BETA_ZONE: ["a"], BETA_REGION: ["r"]}, {GKE: "a", REGION: "r"}, True),
        ({}, {BETA_ZONE: ["a"], BETA_REGION: ["r"]}, {GKE: "a", BETA_REGION: "r"}, False),
        ({}, {ZONE: ["a"], BETA_REGION: ["r"]}, {GKE: "a", BETA_REGION: "r"}, True),
        # Other conditions are left.
        ({}, {ZONE: ["a"], "disk": ["ssd"]}, {GKE: "a", "disk": "ssd"}, True),
        ({}, {ZONE: ["a"], "disk": ["ssd"]}, {GKE: "a"}, False),
        # Zones in labels are a condition of their own, next to the affinity if there is one.
        ({ZONE: "a__b"}, None, {GKE: "b"}, True),
        ({ZONE: "a__ b"}, None, {GKE: "b"}, True),
        ({ZONE: "a__b"}, None, {GKE: "c"}, False),
        ({BETA_ZONE: "a"}, None, {GKE: "a"}, True),
        ({BETA_ZONE: "x", ZONE: "a"}, None, {GKE: "a"}, True),
        ({BETA_ZONE: "x", ZONE: "a"}, None, {GKE: "x"}, False),
        ({ZONE: "a"}, {"disk": ["ssd"]}, {GKE: "a", "disk": "ssd"}, True),
        ({ZONE: "a"}, {"disk": ["ssd"]}, {GKE: "b", "disk": "ssd"}, False),
        ({ZONE: "__"}, None, {}, True),
        ({}, None, {}, True),
    ],
)
def test_the_zones_of_a_migrated_disk_are_those_of_its_driver(
    labels: dict[str, str], affinity: dict[str, list[str]] | None, node: dict[str, str], is_reached: bool
) -> None:
    assert reaches(a_volume(GCE_DISK, labels, affinity), node) is is_reached


@pytest.mark.parametrize("migrated", [None, "", "kubernetes.io/cinder"])
def test_where_the_node_has_not_migrated_the_source_the_affinity_is_unchanged(migrated: str | None) -> None:
    volume = a_volume(GCE_DISK, {}, {ZONE: ["a"]})
    assert reaches(volume, {ZONE: "a"}, migrated)
    assert not reaches(volume, {GKE: "a"}, migrated)


def test_a_driver_without_zones_of_its_own_changes_nothing() -> None:
    volume = a_volume({"azureDisk": {"diskName": "d", "diskURI": "u"}}, {}, {ZONE: ["a"]})
    assert reaches(volume, {ZONE: "a"})


@pytest.mark.parametrize(
    ("disk", "zones", "handle"),
    [
        (Disk("awsElasticBlockStore", "aws://us-east-1a/vol-1"), "", ("ebs.csi.aws.com", "vol-1")),
        (Disk("gcePersistentDisk", "a/d"), "", ("pd.csi.storage.gke.io", "a/d")),
        (Disk("gcePersistentDisk", "d"), "z", ("pd.csi.storage.gke.io", "z/d")),
        (Disk("azureFile", "f"), "", None),
        (Disk("rbd", "image"), "", None),
    ],
)
def test_a_disk_counts_under_the_handle_of_its_driver(disk: Disk, zones: str, handle: tuple[str, str] | None) -> None:
    assert find_counted_handle(disk, zones) == handle
