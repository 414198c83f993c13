"""Volumes of a pod and the objects behind them, by the fields and defaults of the Kubernetes API."""

from typing import Any

import pytest

from engine.snapshot import volumes as readers
from engine.snapshot.volumes import ClaimReference, ControllerReference, read_pod_volumes


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


CLASS = "volume.beta.kubernetes.io/storage-class"
BOUND = "pv.kubernetes.io/bind-completed"


@pytest.mark.parametrize(
    ("volume", "is_named"),
    [
        ({"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, True),
        ({"name": "a", "ephemeral": {}}, False),
        ({"name": "a", "rbd": {"image": "i"}}, False),
    ],
)
def test_only_a_claim_of_the_pod_is_named_by_it(volume: dict[str, Any], is_named: bool) -> None:
    (read,) = read_pod_volumes({"volumes": [volume]}, "p")
    assert read.is_named_claim is is_named


def test_a_claim_has_its_fields() -> None:
    claim = readers.read_claim(
        {
            "metadata": {
                "namespace": "a",
                "name": "c",
                "uid": "u",
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {BOUND: "yes", "volume.kubernetes.io/selected-node": "n1"},
                "ownerReferences": [
                    {"kind": "Pod", "name": "q", "uid": "w"},
                    {"kind": "Pod", "name": "p", "uid": "v", "controller": True},
                ],
            },
            "spec": {
                "storageClassName": "fast",
                "volumeName": "pv",
                "accessModes": ["ReadWriteOnce"],
                "volumeMode": "Block",
                "volumeAttributesClassName": "gold",
                "resources": {"requests": {"storage": "1Ki"}},
                "selector": {},
            },
            "status": {"phase": "Bound"},
        }
    )
    assert (claim.namespace, claim.name, claim.uid, claim.phase) == ("a", "c", "u", "Bound")
    assert (claim.storage_class, claim.volume, claim.attributes_class) == ("fast", "pv", "gold")
    assert (claim.access_modes, claim.volume_mode, claim.request_nano) == (("ReadWriteOnce",), "Block", 1024 * 10**9)
    assert (claim.selected_node, claim.is_deleted, claim.is_bound) == ("n1", True, True)
    assert claim.controller == ControllerReference("Pod", "p", "v")
    assert claim.selector is not None
    assert claim.selector.is_empty


def test_a_claim_of_the_defaults_is_a_file_system_of_no_class() -> None:
    claim = readers.read_claim({"metadata": {"name": "c"}})
    assert (claim.storage_class, claim.volume_mode, claim.access_modes) == ("", "Filesystem", ())
    assert (claim.request_nano, claim.selector, claim.selected_node, claim.controller) == (None, None, None, None)
    assert (claim.is_deleted, claim.is_bound) == (False, False)


@pytest.mark.parametrize(
    ("volume", "annotations", "is_bound"), [("pv", {BOUND: ""}, True), ("pv", {}, False), ("", {BOUND: "yes"}, False)]
)
def test_a_claim_is_bound_to_a_named_volume_when_the_binding_is_complete(
    volume: str, annotations: dict[str, str], is_bound: bool
) -> None:
    claim = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}
    assert readers.read_claim(claim).is_bound is is_bound


@pytest.mark.parametrize(("annotations", "name"), [({}, "fast"), ({CLASS: "slow"}, "slow"), ({CLASS: ""}, "")])
def test_the_former_annotation_names_the_class_before_the_field_does(annotations: dict[str, str], name: str) -> None:
    entry = {"metadata": {"annotations": annotations}, "spec": {"storageClassName": "fast"}}
    assert readers.read_claim(entry).storage_class == name
    assert readers.read_volume(entry).storage_class == name


@pytest.mark.parametrize(
    ("reference", "is_meant"),
    [
        (ClaimReference("a", "c", "u"), True), (ClaimReference("a", "c", ""), True),
        (ClaimReference("a", "c", "v"), False), (ClaimReference("b", "c", "u"), False),
        (ClaimReference("a", "d", ""), False),
    ],
)  # fmt: skip
def test_a_volume_is_reserved_for_the_claim_of_its_name_and_uid(reference: ClaimReference, is_meant: bool) -> None:
    claim = readers.read_claim({"metadata": {"namespace": "a", "name": "c", "uid": "u"}})
    assert reference.names(claim) is is_meant


def test_a_volume_has_its_fields() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    volume = readers.read_volume(
        {
            "metadata": {"name": "pv", "labels": {"x": "y"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "capacity": {"storage": "2"},
                "accessModes": ["ReadOnlyMany"],
                "csi": {"driver": "d", "volumeHandle": "h"},
                "claimRef": {"namespace": "a", "name": "c", "uid": "u"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                "cinder": {"volumeID": "v"},
            },
            "status": {"phase": "Available"},
        }
    )
    assert (volume.name, volume.labels, volume.phase, volume.is_deleted) == ("pv", {"x": "y"}, "Available", True)
    assert (volume.capacity_nano, volume.access_modes, volume.volume_mode) == (
        2 * 10**9,
        ("ReadOnlyMany",),
        "Filesystem",
    )
    assert (volume.csi_driver, volume.csi_handle, volume.claim) == ("d", "h", ClaimReference("a", "c", "u"))
    assert volume.node_affinity is not None
    assert volume.node_affinity.matches({"zone": "a"})
    assert volume.disk is not None
    assert (volume.disk.source, volume.disk.name) == ("cinder", "v")


def test_a_volume_of_the_defaults_has_no_size_and_no_node() -> None:
    volume = readers.read_volume({"metadata": {"name": "pv"}})
    assert (volume.capacity_nano, volume.volume_mode, volume.is_deleted) == (0, "Filesystem", False)
    assert (volume.node_affinity, volume.claim, volume.disk) == (None, None, None)


def test_a_storage_class_has_its_mode_and_topologies() -> None:
    expressions = [{"key": "zone", "values": ["a", "b"]}, {"key": "rack", "values": ["1"]}]
    storage_class = readers.read_storage_class(
        {
            "metadata": {"name": "fast"},
            "provisioner": "d",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": expressions}, {}],
        }
    )
    assert (storage_class.name, storage_class.provisioner) == ("fast", "d")
    assert storage_class.binding_mode == "WaitForFirstConsumer"
    assert storage_class.topologies == ((("zone", ("a", "b")), ("rack", ("1",))), ())
    assert readers.read_storage_class({}).binding_mode == "Immediate"


def test_a_csi_node_has_limits_of_drivers_that_report_one() -> None:
    drivers = [{"name": "a", "allocatable": {"count": 0}}, {"name": "b", "allocatable": {}}, {"name": "c"}]
    plugins = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder,,kubernetes.io/rbd"}
    node = readers.read_csi_node({"metadata": {"name": "n", "annotations": plugins}, "spec": {"drivers": drivers}})
    assert (node.name, node.drivers) == ("n", frozenset(("a", "b", "c")))
    assert node.limits == {"a": 0}
    assert node.migrated_plugins == {"kubernetes.io/cinder", "kubernetes.io/rbd"}
    assert readers.read_csi_node({}).migrated_plugins == frozenset()


def test_a_driver_tracks_capacity_where_it_says_so() -> None:
    driver = readers.read_csi_driver({"metadata": {"name": "d"}, "spec": {"storageCapacity": True}})
    assert (driver.name, driver.tracks_capacity) == ("d", True)
    assert not readers.read_csi_driver({"metadata": {"name": "d"}}).tracks_capacity


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"capacity": "10"}, 10),
        ({"capacity": "10", "maximumVolumeSize": "4"}, 4),
        ({"capacity": "10", "maximumVolumeSize": "0"}, 0),
        ({"capacity": "1500m"}, 2),
        ({}, None),
    ],
)
def test_the_largest_volume_counts_before_the_capacity(fields: dict[str, str], limit: int | None) -> None:
    capacity = readers.read_storage_capacity({"storageClassName": "fast", "nodeTopology": {}, **fields})
    assert (capacity.storage_class, capacity.limit_bytes, capacity.topology.is_empty) == ("fast", limit, True)


def test_an_attachment_is_of_a_volume_to_a_node() -> None:
    spec = {"nodeName": "n", "attacher": "d", "source": {"persistentVolumeName": "pv"}}
    attachment = readers.read_volume_attachment({"spec": spec})
    assert (attachment.node, attachment.driver, attachment.volume) == ("n", "d", "pv")
