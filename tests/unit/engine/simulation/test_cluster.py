"""Described clusters: which nodes HAMi's fit gets, and which kinds of objects a verdict about a pod misses."""

from typing import Any

import pytest

from engine.fit import device_config
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.releases import HamiRelease
from engine.hami.vendors import Vendors
from engine.simulation.cluster import (
    DescribedObjects,
    SimulationCluster,
    build_live_cluster,
    find_unread_kinds,
    list_deleted_handshakes,
)
from engine.snapshot import kinds
from schemas.json_types import Json
from tests.support.builders.claims import a_class, a_device, a_slice
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described

HANDSHAKE, REGISTER = "hami.io/node-handshake", "hami.io/node-nvidia-register"
DELETED = "Deleted_2026-11-21 03:00:00"
V2_8, V2_9 = HamiRelease(2, 8), HamiRelease(2, 9)


def read_vendors() -> Vendors:
    return device_config.read_shipped()


def annotate(item: Json, annotations: Json) -> Json:
    metadata = item["metadata"]
    return item | {"metadata": metadata | {"annotations": {**metadata.get("annotations", {}), **annotations}}}


def a_volume_claim(name: str = "data", volume: str = "") -> Json:
    metadata = {"namespace": "default", "name": name}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {"volumeName": volume},
    }  # fmt: skip


def a_resource_claim(namespace: str = "default", *, is_allocated: bool = True) -> Json:
    status: Json = {"allocation": {"devices": {"results": []}, "nodeSelector": {}}} if is_allocated else {}
    metadata = {"namespace": namespace, "name": "c0"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "status": status}


def test_objects_are_listed_by_kind_and_named_by_group() -> None:
    first, second, claim = a_pod("a"), a_pod("b") | {"metadata": {"namespace": "ml", "name": "b"}}, a_resource_claim()
    objects = DescribedObjects([first, claim, second, {"apiVersion": "v1"}])
    assert objects.by_kind == {"Pod": [first, second], "ResourceClaim": [claim], "None": [{"apiVersion": "v1"}]}
    assert objects.kinds == {"Pod", "ResourceClaim.resource.k8s.io", ""}
    assert objects.pod_keys == {("default", "a"), ("ml", "b")}
    assert DescribedObjects([claim]).pod_keys == frozenset()


def test_devices_are_read_again_only_where_they_changed() -> None:
    cluster = build_described(a_node(), a_class(), a_slice(a_device("a")))
    first = cluster.devices.read(cluster.snapshot)
    same = cluster.devices.read(cluster.with_objects([a_pod()]).snapshot)
    changed = cluster.devices.read(cluster.with_objects([a_slice(a_device("b"))]).snapshot)
    assert same.slices is first.slices
    assert [[device.name for device in item.slices.on_node["n1"][0].devices] for item in (first, changed)] == [
        ["a"], ["b"],
    ]  # fmt: skip


def test_a_cluster_has_its_nodes_and_kinds() -> None:
    cluster = build_described(a_gpu_node("n1"), a_node("n2"), a_pod())
    assert cluster.node_count == 2
    assert [list(cluster.get_nodes()), cluster.list_kind("Service")] == [["n1", "n2"], []]
    assert [pod["metadata"]["name"] for pod in cluster.list_kind("Pod")] == ["p1"]
    assert {"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"} <= cluster.managed_resources
    assert "cpu" not in cluster.managed_resources
    assert cluster.vendors is cluster.columns.vendors
    assert (cluster.unfiltered, cluster.has_pods, cluster.withheld, cluster.selectors) == ((), True, {}, {})


def test_more_objects_are_in_the_snapshot_of_another_cluster() -> None:
    cluster = build_described(a_gpu_node("n1"))
    more = cluster.with_objects([a_node("n2")])
    assert (list(more.snapshot.nodes), list(cluster.snapshot.nodes)) == (["n1", "n2"], ["n1"])
    assert more.columns is cluster.columns


@pytest.mark.parametrize(("release", "left_out"), [(V2_8, ["n1"]), (V2_9, [])])
def test_a_node_with_a_deleted_handshake_is_left_out_by_older_releases(
    release: HamiRelease, left_out: list[str]
) -> None:
    """HAMi up to v2.8 waits for a plugin to report, and reads such a node no more."""
    node = annotate(a_gpu_node("n1"), {HANDSHAKE: DELETED})
    cluster = build_described(node, a_gpu_node("n2"), release=release)
    assert cluster.deleted_handshakes == {"n1": (HANDSHAKE, DELETED)}
    assert cluster.left_out == left_out
    assert sorted(cluster.columns.node_names) == sorted({"n1", "n2"} - set(left_out))
    assert cluster.release == release


def test_an_open_request_to_a_plugin_is_a_state_of_a_served_cluster() -> None:
    """HAMi overwrites the report of Hygon's plugin by its next request, which says nothing of allocatable devices."""
    node = a_node("n1")
    node["status"]["allocatable"]["hygon.com/dcunum"] = "4"
    handshake = {"hami.io/node-handshake-dcu": "Requesting_2026-11-21 03:00:00"}
    registered = annotate(node, {"hami.io/node-dcu-register": "DCU-0,4,65536,100,DCU-K100_AI,0,true:", **handshake})
    assert build_described(registered).columns.node_names == ("n1",)


def test_nodes_that_our_scheduler_does_not_select_are_withheld_from_its_pods() -> None:
    scheduler = a_pod("ours")
    arguments = ["scheduler", "serve", "--name=ours", "--node-label-selector=team=a"]
    scheduler["spec"]["containers"][0]["args"] = arguments
    cluster = build_described(a_gpu_node("n1", labels={"team": "a"}), a_gpu_node("n2"), scheduler)
    assert (cluster.withheld, cluster.selectors) == ({"ours": {"n2": ""}}, {"ours": "team=a"})


def list_used_memory(cluster: SimulationCluster) -> list[int]:
    """List the MiB in use of each device of n1."""
    entry = cluster.columns.get_entry("n1")
    assert entry
    used = cluster.columns.devices["used_memory"]
    return [int(used[row]) for row in range(entry.start, entry.start + entry.size)]


def test_pods_and_quotas_of_a_file_count() -> None:
    held = a_pod("held", node="n1")
    held["metadata"]["annotations"] = {
        "hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-n1-0,NVIDIA,3000,10:;",
    }  # fmt: skip
    held["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": "default", "name": "q"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "5000"}},
    }  # fmt: skip
    cluster = build_described(a_gpu_node("n1"), held, quota)
    assert list_used_memory(cluster) == [3000]
    (nvidia,) = [vendor for vendor in cluster.vendors if vendor.word == "NVIDIA"]
    assert cluster.columns.quotas.compute_left("default", nvidia).memory_mib == 2000


def test_classes_that_a_file_does_not_list_are_assumed() -> None:
    """A claim of the class gpu cannot be judged without it."""
    claim = a_resource_claim(is_allocated=False)
    claim["spec"] = {"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]}}
    assert build_described(a_node(), claim).list_kind("DeviceClass")


@pytest.mark.parametrize(
    ("objects", "has_hami"),
    [
        ([a_node()], False),
        ([a_gpu_node()], True),
        # The plugin has no devices, or the annotation cannot be read: HAMi is there anyway.
        ([annotate(a_node(), {REGISTER: ""})], True),
        ([annotate(a_node(), {HANDSHAKE: DELETED})], True),
        ([annotate(a_pod(), {"hami.io/vgpu-node": "n1"})], True),
        # Another vendor's annotation, outside of HAMi's domain.
        ([annotate(a_node(), {"hami.io/node-dcu-register": ""})], True),
        ([annotate(a_node(), {"example.com/hami.io": "x"})], False),
        # Names of vendors whose nodes list no devices in annotations.
        ([annotate(a_node(), {"metax": "x", "": "x"})], False),
        # Other kinds prove nothing.
        ([a_node(), {"apiVersion": "v1", "kind": "Service", "metadata": {"annotations": {"hami.io/x": ""}}}], False),
    ],
)
def test_annotations_of_nodes_and_pods_show_hami(objects: list[Json], has_hami: bool) -> None:
    assert build_described(*objects).has_hami is has_hami


def build_live(*objects: Json, offered: tuple[str, ...], has_nodes: bool) -> SimulationCluster:
    return build_live_cluster(ClusterColumns(read_vendors()), objects, offered, {}, has_nodes=has_nodes)


def test_a_live_cluster_lets_nodes_pass_of_which_no_object_could_be_read() -> None:
    partly = build_live(a_node("n1"), offered=("n1", "n2"), has_nodes=False)
    assert (partly.unfiltered, partly.node_count) == (("n2",), 2)
    wholly = build_live(a_node("n1"), offered=("n1", "n2"), has_nodes=True)
    assert (wholly.unfiltered, wholly.node_count) == ((), 1)
    assert (wholly.has_hami, wholly.has_pods, wholly.deleted_handshakes) == (True, False, {})
    assert [node["metadata"]["name"] for node in wholly.list_kind("Node")] == ["n1"]


TERM = {"topologyKey": "zone", "labelSelector": {}}


def build_affinity(kind: str = "podAffinity", field: str = "required", **term: Any) -> Json:
    """Build a pod's spec with one rule about other pods."""
    rule = {f"{field}DuringSchedulingIgnoredDuringExecution": [TERM | term]}
    return {"affinity": {kind: rule}}


VOLUMES = {"volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}
CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c0"}]}
VOLUME_KINDS = {kinds.VOLUME_CLAIM, kinds.VOLUME}
DEVICE_KINDS = {kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS}


@pytest.mark.parametrize(
    ("spec", "objects", "listed", "unread"),
    [
        ({}, [], set(), set()),
        ({"volumes": [{"name": "scratch", "emptyDir": {}}]}, [], set(), set()),
        (VOLUMES, [], set(), VOLUME_KINDS),
        (VOLUMES, [a_volume_claim()], set(), {kinds.VOLUME, kinds.STORAGE_CLASS}),
        # A claim that is bound has its volume, and no class decides.
        (VOLUMES, [a_volume_claim(volume="pv"), a_node()], set(), {kinds.VOLUME}),
        (VOLUMES, [a_volume_claim(volume="pv"), a_volume_claim("b")], set(), {kinds.VOLUME, kinds.STORAGE_CLASS}),
        (VOLUMES, [a_volume_claim()], {kinds.VOLUME}, {kinds.STORAGE_CLASS}),
        (VOLUMES, [a_volume_claim()], {kinds.VOLUME, kinds.STORAGE_CLASS}, set()),
        (CLAIMS, [], set(), {kinds.RESOURCE_CLAIM, *DEVICE_KINDS}),
        # The status of an allocated claim names its nodes.
        (CLAIMS, [a_resource_claim()], set(), set()),
        (CLAIMS, [a_resource_claim(is_allocated=False)], set(), DEVICE_KINDS),
        (CLAIMS, [a_resource_claim("other")], set(), DEVICE_KINDS),
        (CLAIMS, [a_resource_claim(), a_resource_claim("other", is_allocated=False)], set(), set()),
        (CLAIMS, [a_resource_claim(), a_resource_claim(is_allocated=False)], set(), DEVICE_KINDS),
        (CLAIMS, [a_resource_claim(is_allocated=False), a_slice(), a_class()], set(), set()),
        # Only a term that must hold, and selects namespaces by their labels, needs the labels.
        (build_affinity(), [], set(), set()),
        (build_affinity(namespaceSelector={"matchLabels": {"team": "a"}}), [], set(), {kinds.NAMESPACE}),
        (
            build_affinity("podAntiAffinity", namespaceSelector={"matchLabels": {"a": "b"}}),
            [],
            set(),
            {kinds.NAMESPACE},
        ),
        (build_affinity(field="preferred", namespaceSelector={"matchLabels": {"a": "b"}}), [], set(), set()),
        (build_affinity(namespaceSelector={"matchLabels": {"a": "b"}}), [], {kinds.NAMESPACE}, set()),
    ],
)
def test_kinds_that_decide_about_a_pod_are_missed_unless_listed_or_there(
    spec: Json, objects: list[Json], listed: set[str], unread: set[str]
) -> None:
    pod = a_pod() | {"spec": {"containers": [], **spec}}
    assert find_unread_kinds(pod, DescribedObjects(objects), frozenset(listed)) == unread


@pytest.mark.parametrize(
    ("spec", "looks_at_pods"),
    [
        ({}, False),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}, False),
        (build_affinity(), True),
        (build_affinity("podAntiAffinity"), True),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, True),
        ({"containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": 80}, {"hostPort": 80}]}]}, True),
        ({"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}, False),
    ],
)
def test_pods_that_could_not_be_read_are_missed_by_rules_about_other_pods(spec: Json, looks_at_pods: bool) -> None:
    pod = a_pod() | {"spec": spec}
    objects = DescribedObjects([a_node()])
    assert find_unread_kinds(pod, objects, has_pods=False) == ({kinds.POD} if looks_at_pods else set())
    # A file without pods describes empty nodes.
    assert find_unread_kinds(pod, objects) == set()


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, {}),
        ({HANDSHAKE: "Requesting_2026-11-21 03:00:00"}, {}),
        ({HANDSHAKE: DELETED}, {"n1": (HANDSHAKE, DELETED)}),
        ({HANDSHAKE: 7}, {}),
        ({"hami.io/node-handshake-dcu": DELETED}, {"n1": ("hami.io/node-handshake-dcu", DELETED)}),
        # NVIDIA's comes first.
        ({"hami.io/node-handshake-dcu": DELETED, HANDSHAKE: "Deleted"}, {"n1": (HANDSHAKE, "Deleted")}),
        ({"example.com/handshake": DELETED}, {}),
    ],
)
def test_handshakes_that_hami_gave_up_are_listed_with_their_text(annotations: Json, expected: Json) -> None:
    node = a_node()
    node["metadata"]["annotations"] = annotations
    assert list_deleted_handshakes({"n1": node, "n2": a_node("n2")}, read_vendors()) == expected


def test_a_pod_that_waits_holds_no_device() -> None:
    cluster = build_described(a_gpu_node("n1"), a_gpu_pod(gpumem=1000, gpu=1))
    assert list_used_memory(cluster) == [0]
