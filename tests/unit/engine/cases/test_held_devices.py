"""Devices that pods of small cases hold: the amounts by hand, from the annotations and claims of the pods."""

from typing import Any

from engine.cases.held_devices import holds_shares, list_held_devices
from engine.snapshot.case_objects import collect_objects
from schemas.events import PickedDevice
from tests.support.builders import claims, divisible_devices
from tests.support.builders.cluster import Object, a_pod
from tests.support.builders.nodes_to_judge import a_device, a_node, a_running_pod


def a_holder(devices: str, *containers: str, init: tuple[str, ...] = ()) -> Object:
    """A pod of HAMi on node-a."""
    pod = a_running_pod(devices)
    pod["spec"] = {
        "nodeName": "node-a", "containers": [{"name": name} for name in containers or ("main",)],
        "initContainers": [{"name": name} for name in init],
    }  # fmt: skip
    return pod


def list_devices(pod: Object, *objects: Object) -> list[PickedDevice]:
    return list_held_devices(pod, collect_objects([pod, *objects]))


def a_picked_device(uuid: str, memory_mib: int | None = None, cores: int = 0, model: str = "") -> PickedDevice:
    fields: dict[str, Any] = {"memory_mib": memory_mib, "cores_percent": cores, "model": model}
    return PickedDevice(container=0, uuid=uuid, **fields)


def test_a_device_of_several_containers_has_the_sum_of_their_amounts() -> None:
    pod = a_holder("a,NVIDIA,1000,10:b,NVIDIA,500,5:;a,NVIDIA,2000,20:;", "main", "other")
    node = {**a_node("node-a", [a_device("a"), a_device("b", type="NVIDIA A10")]), "kind": "Node"}
    assert list_devices(pod, node) == [
        a_picked_device("a", 3000, 30, "NVIDIA A30"),
        a_picked_device("b", 500, 5, "NVIDIA A10"),
    ]
    assert list_devices(pod) == [a_picked_device("a", 3000, 30), a_picked_device("b", 500, 5)]
    unregistered = {"kind": "Node", "metadata": {"name": "node-a"}}
    assert list_devices(pod, unregistered) == [a_picked_device("a", 3000, 30), a_picked_device("b", 500, 5)]


def test_a_share_without_memory_or_cores_adds_none() -> None:
    pod = a_holder("a,NVIDIA,0,0:;a,NVIDIA,0,0:;", "main", "other")
    assert list_devices(pod) == [a_picked_device("a", 0, 0)]


def test_devices_of_init_containers_are_given_back() -> None:
    pod = a_holder("a,NVIDIA,1000,10:;b,NVIDIA,500,5:;", "main", init=("first",))
    assert list_devices(pod) == [a_picked_device("b", 500, 5)]


def test_a_pod_without_a_node_holds_nothing_whatever_its_annotations_name() -> None:
    pod = a_holder("a,NVIDIA,1000,10:;")
    del pod["spec"]["nodeName"]
    assert list_devices(pod) == []


def test_devices_of_claims_are_named_by_driver_pool_and_device() -> None:
    pod = a_pod("p1", node="n1")
    pod["spec"]["resourceClaims"] = [
        {"name": "first", "resourceClaimName": "c0"},
        # Made from a template: the status of the pod names the claim.
        {"name": "second", "resourceClaimTemplateName": "template"},
        {"name": "third", "resourceClaimName": "absent"},
        {"name": "fourth", "resourceClaimTemplateName": "template"},
    ]
    pod["status"]["resourceClaimStatuses"] = [{"name": "second", "resourceClaimName": "c1"}]
    allocated = [
        claims.a_claim(status=claims.an_allocation(*devices)) | {"metadata": {"namespace": "default", "name": name}}
        for name, devices in (("c0", ("gpu-0", "gpu-1")), ("c1", ("gpu-2",)), ("c2", ("gpu-3",)))
    ]
    expected = [a_picked_device(f"{claims.DRIVER}/n1/gpu-{number}") for number in range(3)]
    assert list_devices(pod, *allocated) == expected
    del pod["metadata"]["namespace"]
    assert list_devices(pod, *allocated) == expected


def test_a_share_of_koordinator_has_its_part_of_the_memory_of_the_device() -> None:
    pod = divisible_devices.a_koordinator_holder("p", "n1", 1, 25)
    node = divisible_devices.a_node("n1", divisible_devices.OF_KOORDINATOR)
    (device,) = list_devices(pod, node, divisible_devices.a_device("n1"))
    assert device.container == 0
    assert (device.memory_mib, device.cores_percent, device.model) == (80 * 1024 // 4, 25, "A100-SXM4-80GB")
    # Without the object of its devices the percentage is of an unknown amount.
    (device,) = list_devices(pod, node)
    assert (device.memory_mib, device.cores_percent, device.model) == (None, 25, "")
    assert holds_shares(pod)


def test_a_share_of_volcano_has_the_amounts_of_its_annotation() -> None:
    pod = divisible_devices.a_volcano_holder("p", "n1", "n1-a,NVIDIA,8192,20:;")
    node = divisible_devices.a_vgpu_node("n1")
    (device,) = list_devices(pod, node)
    assert (device.uuid, device.memory_mib, device.cores_percent) == ("n1-a", 8192, 20)
    assert device.model == "NVIDIA-Tesla V100-SXM2-32GB"
    (device,) = list_devices(divisible_devices.a_volcano_holder("p", "n1", "n1-a,NVIDIA,8192,0:;"), node)
    assert (device.memory_mib, device.cores_percent) == (8192, 0)
    assert holds_shares(pod)


def test_pods_of_others_hold_no_shares() -> None:
    assert not holds_shares(a_pod(node="n1"))
    assert not holds_shares(a_holder("a,NVIDIA,1000,10:;"))
