"""Pods that leave their node, as ``kubectl drain`` chooses them, in the order of kube-scheduler's queue."""

from typing import Any

import pytest

from engine.capacity import moves
from engine.capacity.budgets import Budgets
from engine.simulation.pod_placer import placing_pods
from tests.support.builders.capacity import SETTING, a_budget, a_holder, a_replica
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import a_gpu_node, build_described

CONTROLLER = {"kind": "ReplicaSet", "name": "web", "controller": True}


def test_a_cordoned_node_takes_no_further_pods() -> None:
    node = a_node("n1", labels={"zone": "a"}, taints=[{"key": "x", "effect": "NoSchedule"}])
    cordoned = moves.build_cordoned(node)
    assert cordoned == {**node, "spec": {"taints": node["spec"]["taints"], "unschedulable": True}}
    assert "unschedulable" not in node["spec"]


@pytest.mark.parametrize(
    ("owners", "annotations", "is_left"),
    [
        ([], {}, False),
        ([CONTROLLER], {}, False),
        ([{"kind": "DaemonSet", "name": "logs", "controller": True}], {}, True),
        ([{"kind": "DaemonSet", "name": "logs"}], {}, False),
        ([], {"kubernetes.io/config.mirror": "x"}, True),
    ],
)
def test_a_drain_leaves_daemon_pods_and_mirrors_of_static_pods(
    owners: list[dict[str, Any]], annotations: dict[str, str], is_left: bool
) -> None:
    pod = {"metadata": {"ownerReferences": owners, "annotations": annotations}}
    assert moves.is_left_by_drain(pod) is is_left


def test_the_controller_makes_a_pod_again_and_other_owners_do_not() -> None:
    assert (
        moves.find_owner({"metadata": {"ownerReferences": [{"kind": "Node", "name": "n"}, CONTROLLER]}}) == CONTROLLER
    )
    assert moves.find_owner({"metadata": {"ownerReferences": [{"kind": "Node", "name": "n"}]}}) == {}
    assert moves.find_owner({"metadata": {}}) == {}


def test_pods_leave_by_priority_then_by_their_devices_then_by_name() -> None:
    urgent, large = a_pod("z", node="n1"), a_holder("y", "n1", {0: (100, 0), 1: (100, 0)})
    urgent["spec"]["priority"] = 5
    lowest = a_holder("a", "n1", {0: (100, 0), 1: (100, 0), 2: (100, 0)})
    lowest["spec"]["priority"] = -1
    pods = [lowest, a_pod("c", node="n1"), a_pod("b", node="n1"), large, a_holder("x", "n1", {2: (100, 0)}), urgent]
    cluster = build_described(a_gpu_node("n1", 3), *pods)
    ranked = sorted(cluster.list_kind("Pod"), key=lambda pod: moves.rank_pod(cluster, pod))
    assert [moves.name_pod(pod) for pod in ranked] == [f"default/{name}" for name in "zyxbca"]
    assert [moves.count_devices(cluster, pod) for pod in ranked] == [0, 2, 1, 0, 0, 3]


def test_pods_on_a_node_are_those_that_have_not_ended() -> None:
    ended = a_pod("b", node="n1") | {"status": {"phase": "Succeeded"}}
    cluster = build_described(a_node("n1"), a_node("n2"), a_pod("a", node="n1"), ended, a_pod("c", node="n2"))
    assert [moves.name_pod(pod) for pod in moves.list_pods_on(cluster, "n1")] == ["default/a"]
    assert moves.list_pods_on(cluster, "n3") == []


def test_pods_of_one_shape_differ_by_name_only() -> None:
    pod = a_pod("a", labels={"app": "x"}, cpu="1")
    others = [a_pod("b", labels={"app": "y"}, cpu="1"), a_pod("b", labels={"app": "x"}, cpu="2"),
              {**pod, "metadata": {**pod["metadata"], "namespace": "other"}},
              {**pod, "metadata": {**pod["metadata"], "annotations": {"hami.io/vgpu-node": "n1"}}}]  # fmt: skip
    assert moves.describe_shape(pod) == moves.describe_shape(a_pod("b", labels={"app": "x"}, cpu="1"))
    assert all(moves.describe_shape(other) != moves.describe_shape(pod) for other in others)


def test_a_moved_pod_is_on_its_new_node_for_the_next_one() -> None:
    # n2 has one device of 24,576 MiB: room for one of two pods of 14,000 MiB.
    pods = [a_replica(name, "n1", {number: (14_000, 0)}) for number, name in enumerate("ab")]
    cluster = build_described(a_gpu_node("n1", 2), a_gpu_node("n2", 1), *pods)
    with placing_pods(cluster) as placer:
        placer.cluster = placer.cluster.with_objects([moves.build_cordoned(cluster.get_nodes()["n1"])])
        moved = [moves.move_pod(placer, pod, Budgets(cluster), SETTING) for pod in moves.list_pods_on(cluster, "n1")]
    assert [(pod.name, pod.state, pod.node) for pod in moved] == [("a", "moves", "n2"), ("b", "waits", None)]
    assert [(pod.workload, pod.devices, pod.uuids) for pod in moved] == [
        ("ReplicaSet/web", 1, ["GPU-n1-0"]),
        ("ReplicaSet/web", 1, ["GPU-n1-1"]),
    ]
    assert moved[0].reason is None
    assert moved[1].reason is not None


def test_a_blocked_pod_holds_its_devices() -> None:
    pods = [a_replica("a", "n1", {0: (24_576, 0)}), a_replica("b", "n1", {1: (1_000, 0)}, owner="db")]
    cluster = build_described(a_gpu_node("n1", 2), *pods, a_budget("web", "web", 0))
    with placing_pods(cluster) as placer:
        moved = moves.move_pod(placer, pods[0], Budgets(cluster), SETTING)
        assert (moved.state, moved.node, moved.budgets) == ("blocked", None, ["default/web"])
        assert placer.cluster.columns.get_pod_use("uid-a") is not None
