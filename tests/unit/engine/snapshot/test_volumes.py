"""Volumes of a pod: claims, claims that a controller makes, and disks of the Kubernetes API (core/v1 VolumeSource)."""

import pytest

from engine.snapshot.volumes import read_pod_volumes


def test_claims_are_named_by_the_pod_or_derived_from_its_name() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
    ]
    named, ephemeral = read_pod_volumes({"volumes": volumes}, "train-0")
    assert (named.claim, named.is_ephemeral, named.disk) == ("models", False, None)
    assert (ephemeral.claim, ephemeral.is_ephemeral, ephemeral.disk) == ("train-0-scratch", True, None)


@pytest.mark.parametrize(
    ("source", "fields", "identity"),
    [
        ("gcePersistentDisk", {"pdName": "disk-1"}, "disk-1"),
        ("awsElasticBlockStore", {"volumeID": "vol-1"}, "vol-1"),
        ("rbd", {"image": "image-1", "pool": "gpu", "monitors": ["10.0.0.1"]}, "image-1"),
        ("iscsi", {"iqn": "iqn.2026-11.example:1"}, "iqn.2026-11.example:1"),
        ("azureDisk", {"diskURI": "disk-2"}, "disk-2"),
    ],
)
def test_a_disk_is_read_by_the_field_that_names_it(source: str, fields: dict[str, object], identity: str) -> None:
    (volume,) = read_pod_volumes({"volumes": [{"name": "data", source: fields | {"readOnly": True}}]}, "train-0")
    assert volume.disk is not None
    assert (volume.disk.source, volume.disk.name, volume.disk.is_read_only) == (source, identity, True)
    assert volume.disk.pool == ("gpu" if source == "rbd" else "")
    assert volume.disk.monitors == (frozenset({"10.0.0.1"}) if source == "rbd" else frozenset())


def test_other_volumes_are_no_matter_of_scheduling() -> None:
    volumes = [{"name": "cache", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}]
    assert read_pod_volumes({"volumes": volumes}, "train-0") == ()
    assert read_pod_volumes({}, "train-0") == ()
