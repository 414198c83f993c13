"""Obstacles behind an insufficient resource, each distinguished from the others."""

from typing import Any

from engine.filters.cycle import SchedulingCycle, start_cycle
from engine.filters.resource_obstacles import (
    OfferedResource,
    ResourceBehindConstraint,
    ResourceInUse,
    ResourceNeverEnough,
    ResourceNotOffered,
    ResourceObstacle,
    ResourceUnhealthy,
    UnhealthyNode,
    find_resource_obstacles,
)
from engine.filters.verdicts import Unjudged
from engine.snapshot import kinds
from engine.snapshot.reading import read_snapshot
from tests.support.builders.cluster import a_node, a_pod, a_taint

GPU = "nvidia.com/gpu"


def find_obstacles(
    pod: dict[str, Any], *objects: dict[str, Any], resource: str = GPU, unread: tuple[str, ...] = ()
) -> tuple[ResourceObstacle, ...]:
    cycle = start_cycle(read_snapshot(objects, unread), pod)
    assert isinstance(cycle, SchedulingCycle)
    return find_resource_obstacles(cycle, resource)


def a_holder(name: str, gpus: str, node: str = "n1", since: str = "") -> dict[str, Any]:
    pod = a_pod(name, node=node, gpu=gpus)
    pod["status"]["startTime"] = since or None
    return pod


def with_capacity(node: dict[str, Any], capacity: str) -> dict[str, Any]:
    node["status"]["capacity"][GPU] = capacity
    return node


def with_resource(node: dict[str, Any], resource: str, amount: str) -> dict[str, Any]:
    node["status"]["allocatable"][resource] = amount
    return node


def test_a_node_with_enough_that_the_pod_may_use_is_not_an_obstacle() -> None:
    assert find_obstacles(a_pod(gpu="2"), a_node("n1", gpu="1"), a_node("n2", gpu="2")) == ()


def test_a_resource_that_no_node_has_is_offered_by_none() -> None:
    nodes = [a_node("n1"), with_resource(a_node("n2", gpu="4"), "amd.com/gpu", "2"), a_node("n3", gpu="8")]
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/gpus": "1"}
    [obstacle] = find_obstacles(pod, *nodes, resource="nvidia.com/gpus")
    assert isinstance(obstacle, ResourceNotOffered)
    assert obstacle.nearest[0] == OfferedResource(GPU, 2, 12)
    assert obstacle.announcing == ()
    assert obstacle.device_class is None


def test_names_without_likeness_are_not_offered_as_nearest() -> None:
    [obstacle] = find_obstacles(a_pod(gpu="1"), with_resource(a_node("n1"), "vendor.example/fpga", "2"))
    assert isinstance(obstacle, ResourceNotOffered)
    assert obstacle.nearest == ()


def test_a_profile_of_the_same_vendor_and_a_device_of_another_vendor_are_alike() -> None:
    node = with_resource(with_resource(a_node("n1"), "nvidia.com/mig-2g.20gb", "3"), "amd.com/gpu", "1")
    [obstacle] = find_obstacles(a_pod(gpu="1"), node)
    assert isinstance(obstacle, ResourceNotOffered)
    assert {offered.resource for offered in obstacle.nearest} == {"nvidia.com/mig-2g.20gb", "amd.com/gpu"}


def test_nodes_that_announce_none_are_named() -> None:
    [obstacle] = find_obstacles(a_pod(gpu="1"), a_node("n1", gpu="0"), a_node("n2"))
    assert isinstance(obstacle, ResourceNotOffered)
    assert obstacle.announcing == ("n1",)


def test_a_device_class_may_provide_what_no_node_offers() -> None:
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": GPU},
    }
    [obstacle] = find_obstacles(a_pod(gpu="1"), a_node("n1"), device_class)
    assert isinstance(obstacle, ResourceNotOffered)
    assert obstacle.device_class == "gpus"


def test_a_request_beyond_the_largest_node_is_never_enough() -> None:
    nodes = [a_node("n1", gpu="8"), a_node("n2", gpu="4")]
    assert find_obstacles(a_pod(gpu="16"), *nodes) == (ResourceNeverEnough(GPU, 16, 8, "n1", 12),)


def test_memory_that_the_node_keeps_for_itself_is_not_unhealthy() -> None:
    node = a_node("n1")
    node["status"]["capacity"]["memory"] = "32Gi"
    [obstacle] = find_obstacles(a_pod(memory="20Gi"), node, resource="memory")
    assert obstacle == ResourceNeverEnough("memory", 20 * 2**30, 16 * 2**30, "n1", 16 * 2**30)


def test_a_node_would_have_enough_with_healthy_devices() -> None:
    node = with_capacity(a_node("n1", gpu="6"), "8")
    assert find_obstacles(a_pod(gpu="8"), node) == (ResourceUnhealthy(GPU, 8, (UnhealthyNode("n1", 8, 6, 0),)),)


def test_unhealthy_devices_and_holders_may_both_be_in_the_way() -> None:
    obstacles = find_obstacles(a_pod(gpu="2"), with_capacity(a_node("n1", gpu="4"), "8"), a_holder("h", "4"))
    assert [type(obstacle) for obstacle in obstacles] == [ResourceUnhealthy, ResourceInUse]


def test_unhealthy_devices_that_would_not_be_enough_are_not_the_obstacle() -> None:
    node = with_capacity(a_node("n1", gpu="7"), "8")
    [obstacle] = find_obstacles(a_pod(gpu="4"), node, a_holder("h", "6"))
    assert isinstance(obstacle, ResourceInUse)


def test_what_is_in_use_has_its_holders_the_longest_running_first() -> None:
    holders = [a_holder("young", "2", since="2026-02-01T00:00:00Z"), a_holder("old", "1", since="2026-01-01T00:00:00Z")]
    waiting = a_pod("waiting", gpu="8")
    [obstacle] = find_obstacles(a_pod(gpu="2"), a_node("n1", gpu="4"), *holders, waiting)
    assert isinstance(obstacle, ResourceInUse)
    assert (obstacle.requested, obstacle.free, obstacle.nodes) == (2, 1, ("n1",))
    assert [(holder.pod, holder.amount, holder.since[:7]) for holder in obstacle.holders] == [
        ("old", 1, "2026-01"),
        ("young", 2, "2026-02"),
    ]


def list_ends(obstacle: ResourceObstacle) -> list[tuple[str, list[str]]]:
    assert isinstance(obstacle, ResourceInUse)
    return [(end.node, sorted(holder.pod for holder in end.holders)) for end in obstacle.sufficient]


def test_the_end_of_one_large_holder_is_named_before_that_of_several() -> None:
    holders = [a_holder("s1", "1"), a_holder("s2", "1"), a_holder("large", "2"), a_holder("b1", "2", "n2")]
    holders += [a_holder("b2", "1", "n2"), a_holder("b3", "1", "n2")]
    [obstacle] = find_obstacles(a_pod(gpu="2"), a_node("n2", gpu="4"), a_node("n1", gpu="4"), *holders)
    assert list_ends(obstacle) == [("n2", ["b1"]), ("n1", ["large"])]


def test_no_holder_is_named_whose_end_is_not_needed() -> None:
    # The leaving pod comes first; with the large one there is enough without it.
    leaving = a_holder("leaving", "1")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    [obstacle] = find_obstacles(a_pod(gpu="3"), a_node("n1", gpu="4"), leaving, a_holder("large", "3"))
    assert list_ends(obstacle) == [("n1", ["large"])]
    [obstacle] = find_obstacles(a_pod(gpu="1"), a_node("n1", gpu="4"), leaving, a_holder("large", "3"))
    assert list_ends(obstacle) == [("n1", ["leaving"])]


def test_free_devices_behind_a_taint_a_selector_and_a_cordon() -> None:
    pod = a_pod(gpu="2")
    pod["spec"]["nodeSelector"] = {"pool": "a"}
    cordoned = a_node("n2", gpu="2", labels={"pool": "a"})
    cordoned["spec"]["unschedulable"] = True
    nodes = [a_node("n1", gpu="2", taints=[a_taint("x")], labels={"pool": "a"}), cordoned, a_node("n3", gpu="4")]
    [obstacle] = find_obstacles(pod, *nodes, a_node("n4", gpu="1", labels={"pool": "a"}))
    assert isinstance(obstacle, ResourceBehindConstraint)
    assert [(node.node, node.free, [refusal.plugin for refusal in node.refusals]) for node in obstacle.nodes] == [
        ("n1", 2, ["TaintToleration"]),
        ("n2", 2, ["NodeUnschedulable"]),
        ("n3", 4, ["NodeAffinity"]),
    ]


def test_devices_in_use_come_before_free_ones_behind_a_taint() -> None:
    nodes = [a_node("n1", gpu="2"), a_node("n2", gpu="2", taints=[a_taint("x")])]
    obstacles = find_obstacles(a_pod(gpu="2"), *nodes, a_holder("h", "1"))
    assert [type(obstacle) for obstacle in obstacles] == [ResourceInUse, ResourceBehindConstraint]


def test_a_closed_node_without_enough_is_named_only_where_no_other_has_the_resource() -> None:
    closed = a_node("n2", gpu="2", taints=[a_taint("x")])
    in_use = a_holder("h2", "1", "n2")
    [obstacle] = find_obstacles(a_pod(gpu="2"), a_node("n1", gpu="2"), a_holder("h", "1"), closed, in_use)
    assert isinstance(obstacle, ResourceInUse)
    [behind] = find_obstacles(a_pod(gpu="2"), a_node("n1"), closed, in_use)
    assert isinstance(behind, ResourceBehindConstraint)


def test_pods_per_node_are_a_resource_that_pods_hold() -> None:
    [obstacle] = find_obstacles(a_pod(), a_node("n1", pods="1"), a_pod("h", node="n1"), resource="pods")
    assert list_ends(obstacle) == [("n1", ["h"])]
    assert find_obstacles(a_pod(), a_node("n1", pods="2"), a_pod("h", node="n1"), resource="pods") == ()


def test_use_is_unknown_without_the_pods() -> None:
    assert find_obstacles(a_pod(gpu="1"), a_node(gpu="1"), unread=(kinds.POD,)) == (
        Unjudged("NodeResourcesFit", frozenset({kinds.POD})),
    )
    [obstacle] = find_obstacles(a_pod(gpu="2"), a_node(gpu="1"), unread=(kinds.POD,))
    assert isinstance(obstacle, ResourceNeverEnough)
    [obstacle] = find_obstacles(a_pod(gpu="2"), unread=(kinds.NODE,))
    assert isinstance(obstacle, Unjudged)
