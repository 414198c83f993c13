"""Pods that the cluster's objects refuse: volumes, resources and claims, with the numbers of each case.

The rules are those of "Persistent Volumes", "Storage Classes", "Node-specific Volume Limits", "Dynamic Resource
Allocation" and "Assigning Pods to Nodes" in the documentation of Kubernetes; names and numbers are counted by hand.
"""

from typing import Any

import pytest

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from schemas.answers.diagnosis import Diagnosis, Obstacle
from schemas.json_types import Json
from tests.support.builders import claims
from tests.support.builders.layer_objects import NOW, a_node, a_pod, get_code

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
DRIVER = "csi.example.com"


def judge(pod: Json, *objects: Json) -> Diagnosis:
    """Judge a pod on the objects of a cluster."""
    facts = CaseFacts(collect_objects([pod, *objects]), NOW)
    name = pod["metadata"]["name"]
    return diagnose(facts.build("lab", name), judged=facts.judge("lab", name))


def list_obstacles(diagnosis: Diagnosis) -> dict[str, Obstacle]:
    return {item.code: item for item in (diagnosis.obstacle, *diagnosis.other_obstacles) if item}


def a_pod_with_claims(*names: str, pod: str = "job-0", node: str = "") -> Json:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return a_pod(pod, spec={"volumes": volumes, **({"nodeName": node} if node else {})})


def a_volume_claim(name: str, volume: str = "", **spec: Any) -> Json:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    described = {"storageClassName": "disk", "accessModes": ["ReadWriteOnce"], "volumeName": volume, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "lab", "name": name, "uid": f"uid-{name}", "annotations": annotations},
        "spec": described | {"resources": {"requests": {"storage": "10Gi"}}},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def a_volume(name: str, expressions: tuple[Json, ...] = (), *, label: str = "") -> Json:
    """A bound volume; expressions: of one term each of its node affinity; label: one with zone ``b``."""
    spec: Json = {"storageClassName": "disk", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}}
    spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    if expressions:
        terms = [{"matchExpressions": [expression]} for expression in expressions]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = {"name": name, "labels": {label: "b"} if label else {}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def a_storage_class(mode: str, **fields: Any) -> Json:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"}}
    return kind | {"provisioner": DRIVER, "volumeBindingMode": mode, **fields}


def build_zone_term(*zones: str) -> Json:
    return {"key": ZONE, "operator": "In", "values": list(zones)}


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        (a_volume("pv-1", (build_zone_term("b"),)), f"pv-1 of claim data, only on nodes with {ZONE}=b"),
        (a_volume("pv-1", (build_zone_term("b"), build_zone_term("c"))), f"only on nodes with {ZONE}=b or {ZONE}=c"),
        (a_volume("pv-1", label=ZONE), "pv-1 of claim data, only on nodes of zone b"),
        (a_volume("pv-1", label=OLD_ZONE), "pv-1 of claim data, only on nodes of zone b"),
    ],
    ids=["affinity", "one of two terms", "label of a zone", "older label of a zone"],
)
def test_a_volume_of_another_zone_is_named_with_where_it_can_be_reached(volume: Json, words: str) -> None:
    node = a_node("n1", labels={ZONE: "a", OLD_ZONE: "a"})
    pod, claim = a_pod_with_claims("data"), a_volume_claim("data", "pv-1")
    diagnosis = judge(pod, node, claim, volume, a_storage_class("WaitForFirstConsumer"))
    assert get_code(diagnosis) == "VolumeElsewhere"
    assert words in diagnosis.sentence.en
    assert "WaitForFirstConsumer" not in diagnosis.sentence.en


def test_only_the_volume_out_of_reach_is_named_of_two() -> None:
    volumes = a_volume("near", (build_zone_term("a"),)), a_volume("far", (build_zone_term("b"),))
    bound = a_volume_claim("data", "near"), a_volume_claim("models", "far")
    node = a_node("n1", labels={ZONE: "a"})
    pod = a_pod_with_claims("data", "models")
    diagnosis = judge(pod, node, *volumes, *bound, a_storage_class("WaitForFirstConsumer"))
    assert f"far of claim models, only on nodes with {ZONE}=b" in diagnosis.sentence.en
    assert "near" not in diagnosis.sentence.en


def test_a_class_that_binds_at_once_is_why_a_volume_is_elsewhere() -> None:
    objects = (
        a_volume_claim("data", "pv-1"),
        a_volume("pv-1", (build_zone_term("b"),)),
        a_node("n1", labels={ZONE: "a"}),
    )
    at_once, later = (
        judge(a_pod_with_claims("data"), *objects, a_storage_class(mode))
        for mode in ("Immediate", "WaitForFirstConsumer")
    )
    assert at_once.sentence.en != later.sentence.en
    assert at_once.sentence.en.startswith(later.sentence.en.rstrip("."))


def test_a_claim_for_which_no_volume_can_be_made_is_named_with_its_class() -> None:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    storage_class = a_storage_class("WaitForFirstConsumer", allowedTopologies=topologies)
    nodes = a_node("n1", labels={ZONE: "a"}), a_node("n2", labels={ZONE: "a"})
    diagnosis = judge(a_pod_with_claims("data"), *nodes, a_volume_claim("data"), storage_class, a_volume("pv-9"))
    assert get_code(diagnosis) == "VolumeNotAvailable"
    assert diagnosis.sentence.en == (
        "On 2 of 2 nodes, there is no volume for the pod's claim, and none can be made: data (class disk)."
    )


def test_storage_without_space_for_a_new_volume_has_an_obstacle_of_its_own() -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}}
    capacity = {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "capacity": "9Gi", "storageClassName": "disk",
        "metadata": {"namespace": "kube-system", "name": "c-1"}, "nodeTopology": {"matchLabels": {ZONE: "a"}},
    }  # fmt: skip
    storage_class = a_storage_class("WaitForFirstConsumer")
    objects = a_node("n1", labels={ZONE: "a"}), a_volume_claim("data"), a_volume("pv-9"), storage_class
    tracking = driver | {"spec": {"storageCapacity": True}}
    short = judge(a_pod_with_claims("data"), *objects, tracking, capacity)
    assert get_code(short) == "VolumeNoSpace"
    assert "data (class disk)" in short.sentence.en
    enough = judge(a_pod_with_claims("data"), *objects, tracking, capacity | {"capacity": "10Gi"})
    assert enough.obstacle is None or enough.obstacle.code != "VolumeNoSpace"


def test_a_node_with_as_many_volumes_as_its_driver_attaches_has_both_numbers() -> None:
    csi_node = {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": "n1", "allocatable": {"count": 1}}]},
    }  # fmt: skip
    bound = a_volume_claim("data", "pv-1"), a_volume("pv-1"), a_volume_claim("other", "pv-2"), a_volume("pv-2")
    holder = a_pod_with_claims("other", pod="holder", node="n1")
    diagnosis = judge(a_pod_with_claims("data"), holder, *bound, a_node("n1"), csi_node, a_storage_class("Immediate"))
    assert get_code(diagnosis) == "VolumeLimit"
    assert (
        diagnosis.sentence.en == f"The only node has as many volumes attached as the driver allows: {DRIVER} 1/1 on n1."
    )


def test_the_pod_that_uses_an_exclusive_claim_is_named_with_its_node() -> None:
    bound = a_volume_claim("data", "pv-1", accessModes=["ReadWriteOncePod"]), a_volume("pv-1")
    shared = a_volume_claim("models", "pv-2"), a_volume("pv-2")
    pods = a_pod_with_claims("data", pod="user", node="n2"), a_pod_with_claims("models", pod="reader", node="n1")
    pod = a_pod_with_claims("data", "models")
    diagnosis = judge(pod, *pods, *bound, *shared, a_node("n1"), a_node("n2"), a_storage_class("Immediate"))
    assert get_code(diagnosis) == "VolumeInUse"
    assert diagnosis.sentence.en == (
        "Another pod uses the claim data, which only one pod at a time may use (ReadWriteOncePod): lab/user on n2."
    )


def ask_for(**amounts: str) -> Json:
    requests = {resource.replace("_", "/"): amount for resource, amount in amounts.items()}
    return {"containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}]}


def test_nodes_without_a_resource_and_nodes_with_too_little_of_it_are_two_obstacles() -> None:
    # n3 has enough, and another pod has the port.
    gpus, port = {"example.com/gpu": "4"}, [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
    spec = ask_for(**{"example.com_gpu": "2"})
    spec["containers"][0]["ports"] = port
    web = {"containers": [{"name": "web", "resources": {}, "ports": port}], "nodeName": "n3"}
    pods = a_pod("web", spec=web), a_pod("holder", spec={**ask_for(**{"example.com_gpu": "3"}), "nodeName": "n1"})
    nodes = a_node("n1", allocatable=gpus), a_node("n2"), a_node("n3", allocatable=gpus)
    codes = list_obstacles(judge(a_pod(spec=spec), *pods, *nodes))
    assert codes["PortTaken"].nodes == ["n3"]
    assert codes["NodeWithoutResource"].nodes == ["n2"]
    assert codes["InsufficientResource"].nodes == ["n1"]
    assert codes["InsufficientResource"].sentence.en.startswith(
        "1 of 3 nodes has too little example.com/gpu left: 2 asked, at most 1 free, on n1"
    )


def test_a_node_with_as_many_pods_as_it_takes_is_full() -> None:
    nodes = a_node("n1", allocatable={"pods": "1"}), a_node("n2", taint="infra")
    diagnosis = judge(a_pod(), a_pod("holder", spec={"nodeName": "n1"}), *nodes)
    assert get_code(diagnosis) == "TooManyPods"
    assert diagnosis.sentence.en == "1 of 2 nodes holds as many pods as it may."
    codes = list_obstacles(judge(a_pod(), a_pod("leaving", spec={"nodeName": "n2"}), *nodes))
    assert "TooManyPods" not in codes


def test_devices_that_their_plugin_withholds_are_counted_with_those_in_use() -> None:
    node = a_node("n1", allocatable={"example.com/gpu": "6"})
    node["status"]["capacity"] = node["status"]["capacity"] | {"example.com/gpu": "8"}
    holder = a_pod("holder", spec={**ask_for(**{"example.com_gpu": "1"}), "nodeName": "n1"})
    diagnosis = judge(a_pod(spec=ask_for(**{"example.com_gpu": "7"})), holder, node)
    assert get_code(diagnosis) == "ResourceUnhealthy"
    assert diagnosis.sentence.en == (
        "The only node would have enough example.com/gpu if all devices were healthy: 2 of 8 are not allocatable on "
        "n1, 1 in use, and the pod asks for 7."
    )
    # With two in use, healthy devices would not do.
    second = a_pod("second", spec={**ask_for(**{"example.com_gpu": "1"}), "nodeName": "n1"})
    assert get_code(judge(a_pod(spec=ask_for(**{"example.com_gpu": "7"})), holder, second, node)) != "ResourceUnhealthy"


def test_a_share_of_a_device_without_hamis_scheduler_is_named_with_the_scheduler() -> None:
    diagnosis = judge(a_pod(spec=ask_for(**{"nvidia.com_gpumem": "4000", "nvidia.com_gpucores": "30"})), a_node("n1"))
    assert get_code(diagnosis) == "ShareOfOtherScheduler"
    assert diagnosis.sentence.en == (
        "The pod asks for nvidia.com/gpucores, nvidia.com/gpumem, which HAMi's scheduler counts and no node ever "
        "offers, and default-scheduler is to place it."
    )


def build_pod_with_claim(**fields: Any) -> tuple[Json, Json]:
    """Build a pod and its claim for a device."""
    claim = claims.a_claim(claims.a_request(**fields), name="gpus")
    claim["metadata"]["namespace"] = "lab"
    return a_pod(spec={"resourceClaims": [{"name": "gpus", "resourceClaimName": "gpus"}]}), claim


def test_devices_of_no_driver_are_named_with_the_classes_that_exist() -> None:
    diagnosis = judge(
        *build_pod_with_claim(), a_node("n1"), claims.a_class(), claims.a_class(name="large"), claims.a_slice(node="n7")
    )
    assert get_code(diagnosis) == "DevicesNotPublished"
    assert diagnosis.sentence.en == (
        "No device fits the pod's claim: on the only node, no driver publishes a device; there are the device classes "
        "gpu, large."
    )


def test_a_selector_that_fails_on_a_device_is_the_error_that_ends_the_attempt() -> None:
    pod, claim = build_pod_with_claim()
    claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [
        {"cel": {"expression": 'device.attributes["gpu.nvidia.com"].model == "A100"'}}
    ]
    diagnosis = judge(pod, claim, a_node("n1"), claims.a_class(), claims.a_slice(claims.a_device("gpu-0")))
    assert get_code(diagnosis) == "ClaimError"
    assert "no such key: model" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert [(devices.reason, devices.devices) for devices in diagnosis.obstacle.devices] == [("SelectorError", 1)]


def test_a_claim_with_devices_of_another_node_excludes_this_one() -> None:
    pod, claim = build_pod_with_claim()
    selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}
    claim["status"] = claims.an_allocation("gpu-0", node="n2")
    claim["status"]["allocation"]["nodeSelector"] = selector
    slices = claims.a_slice(claims.a_device("gpu-0")), claims.a_slice(claims.a_device("gpu-0"), node="n2")
    diagnosis = judge(pod, claim, a_node("n1"), a_node("n2", taint="infra"), claims.a_class(), *slices)
    assert list_obstacles(diagnosis)["ClaimNotOnNode"].nodes == ["n1"]
