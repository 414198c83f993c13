"""Suggestions that change other objects than nodes and pod: ends of pods, a new node, a looser claim, a new volume."""

from typing import Any

import pytest

from engine.simulation.claim_changes import replace_expression
from tests.support.builders.claims import a_claim, a_class, a_device, a_pod_with, a_request, a_slice
from tests.support.builders.cluster import Object, a_node, a_pod, a_taint
from tests.support.builders.simulations import simulate

MEMORY = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"


def list_suggested(answer: Any) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """List who acts and the edits of each suggestion."""
    return [
        (item["who_acts"], [tuple(edit[key] for key in ("constraint", "where", "before", "after")) for edit in edits])
        for item in answer["suggestions"]["items"]
        for edits in [item["edits"]]
    ]


def list_of_kind(answer: Any, constraint: str) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    return [(actor, edits) for actor, edits in list_suggested(answer) if edits[0][0] == constraint]


def test_the_fewest_ends_that_free_enough_are_suggested() -> None:
    holders = [a_pod("small", node="n1", cpu="1"), a_pod("large", node="n1", cpu="6")]
    answer = simulate(a_pod(cpu="5"), a_node("n1"), *holders)
    assert list_of_kind(answer, "use") == [("wait", [("use", "default/large", "6 cpu", "")])]


def test_pods_that_return_at_once_are_no_end_to_wait_for() -> None:
    daemon = a_pod("daemon", node="n1", cpu="6")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "d", "uid": "u"}]
    assert list_of_kind(simulate(a_pod(cpu="5"), a_node("n1"), daemon), "use") == []


def test_two_pods_end_where_one_does_not_free_enough() -> None:
    holders = [a_pod(f"h{number}", node="n1", cpu="4", gpu="1") for number in range(2)]
    answer = simulate(a_pod(cpu="6", gpu="2"), a_node("n1", gpu="2"), *holders)
    [(actor, edits)] = list_of_kind(answer, "use")
    assert actor == "wait"
    assert sorted(edit[1] for edit in edits) == ["default/h0", "default/h1"]


def test_the_smallest_node_that_is_large_enough_is_added() -> None:
    nodes = [a_node("small", cpu="2"), a_node("middle", cpu="8"), a_node("large", cpu="64")]
    holders = [a_pod("m", node="middle", cpu="7"), a_pod("l", node="large", cpu="63")]
    answer = simulate(a_pod(cpu="5"), *nodes, *holders)
    [first, *_] = list_of_kind(answer, "node")
    assert first == ("administrator", [("node", "middle", "", "")])


def test_a_node_is_not_copied_where_a_taint_keeps_the_pod_out_as_well() -> None:
    answer = simulate(a_pod(cpu="5"), a_node("n1", taints=[a_taint("pool")]), a_pod("h", node="n1", cpu="6"))
    assert list_of_kind(answer, "node") == []


def test_a_bound_of_a_claim_is_loosened_to_the_nearest_device() -> None:
    devices = [a_device("a", "24Gi"), a_device("b", "40Gi")]
    cluster = [a_node("n1"), a_slice(*devices), a_class(), a_claim(a_request(MEMORY))]
    answer = simulate(a_pod_with("c0"), *cluster)
    looser = MEMORY.replace("80Gi", "40Gi")
    assert list_of_kind(answer, "claim") == [("you", [("claim", "c0", MEMORY, looser)])]


def test_a_bound_goes_as_low_as_the_last_of_the_devices_that_are_needed() -> None:
    devices = [a_device("a", "24Gi"), a_device("b", "40Gi")]
    cluster = [a_node("n1"), a_slice(*devices), a_class(), a_claim(a_request(MEMORY, count=2))]
    [(_, [edit])] = list_of_kind(simulate(a_pod_with("c0"), *cluster), "claim")
    assert edit[3] == MEMORY.replace("80Gi", "24Gi")


@pytest.mark.parametrize("expression", ["device.driver == 'other'", f"{MEMORY} && device.driver == 'other'"])
def test_a_device_that_misses_more_than_a_bound_is_not_reached(expression: str) -> None:
    cluster = [a_node("n1"), a_slice(a_device("a", "24Gi")), a_class(), a_claim(a_request(expression))]
    assert list_of_kind(simulate(a_pod_with("c0"), *cluster), "claim") == []


def a_driver_class(name: str, driver: str, *more: str) -> Object:
    return a_class(f"device.driver == '{driver}'", *more, name=name)


FULL_GPU = "device.attributes['gpu.nvidia.com'].type == 'gpu'"


def a_mig_cluster(device_class: str, *more: Object) -> list[Object]:
    """Build a node that has only MIG devices, for a claim that names a class."""
    devices = [a_device("mig-0", "20Gi", {"type": "mig"})]
    classes = [
        a_driver_class("gpu.nvidia.com", "gpu.nvidia.com", FULL_GPU),
        a_driver_class("mig.nvidia.com", "gpu.nvidia.com"),
    ]
    return [a_node("n1"), a_slice(*devices), *classes, a_claim(a_request(device_class=device_class)), *more]


def test_another_class_of_the_same_driver_is_suggested_where_its_devices_are_free() -> None:
    answer = simulate(a_pod_with("c0"), *a_mig_cluster("gpu.nvidia.com"))
    assert list_suggested(answer) == [("you", [("class", "c0: r0", "gpu.nvidia.com", "mig.nvidia.com")])]


def test_the_nearest_class_is_suggested_for_one_that_does_not_exist() -> None:
    answer = simulate(a_pod_with("c0"), *a_mig_cluster("migs.nvidia.com"))
    assert list_of_kind(answer, "class") == [("you", [("class", "c0: r0", "migs.nvidia.com", "mig.nvidia.com")])]


def test_a_free_device_of_another_kind_is_no_replacement() -> None:
    network = a_slice(a_device("nic-0"), node="n1", pool="nics", driver="rdma.example.org")
    cluster = [a_node("n1"), network, a_driver_class("rdma", "rdma.example.org"), a_driver_class("gpu", "gpu.x.org")]
    answer = simulate(a_pod_with("c0"), *cluster, a_claim(a_request(device_class="gpu")))
    assert list_of_kind(answer, "class") == []


def test_only_the_alternative_that_is_named_gets_another_class() -> None:
    choices = [{"name": name, "deviceClassName": "gpu.nvidia.com"} for name in ("first", "second")]
    cluster = a_mig_cluster("gpu.nvidia.com")
    cluster[-1] = a_claim({"name": "any", "firstAvailable": choices})
    edits = [edits for _, edits in list_of_kind(simulate(a_pod_with("c0"), *cluster), "class")]
    assert edits == [[("class", f"c0: any/{name}", "gpu.nvidia.com", "mig.nvidia.com")] for name in ("first", "second")]


def test_only_the_expression_is_replaced() -> None:
    claim = {"selectors": [{"cel": {"expression": "a"}}, {"cel": {"expression": "b"}}], "name": "a"}
    expected = {"selectors": [{"cel": {"expression": "c"}}, {"cel": {"expression": "b"}}], "name": "a"}
    assert replace_expression(claim, "a", "c") == expected


def a_volume_in(zone: str, name: str, phase: str = "Bound") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        },
        "status": {"phase": phase},
    }  # fmt: skip


def test_a_new_claim_takes_the_place_of_a_volume_in_another_zone() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data", "namespace": "default", "uid": "u",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "storageClassName": "late", "accessModes": ["ReadWriteOnce"], "volumeName": "far",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Bound"},
    }  # fmt: skip
    storage_class = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    node = a_node("n1", labels={"topology.kubernetes.io/zone": "near"})
    far = a_volume_in("far", "far")
    assert list_of_kind(simulate(pod, node, claim, storage_class, far), "volume") == []
    answer = simulate(pod, node, claim, storage_class, far, a_volume_in("near", "near", "Available"))
    assert list_suggested(answer) == [("you", [("volume", "data", "far", "data-new")])]
