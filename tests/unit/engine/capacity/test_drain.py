"""The plan of a drain: every pod of the node is placed by the judge on the rest of the cluster, or waits."""

from typing import Any

import pytest
from hypothesis import given, settings

from engine.capacity.drain import NodeMissingError, plan_drain
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import placing_pods
from engine.simulation.verdict import judge_simulated
from tests.support.builders.capacity import SETTING, a_holder, clusters
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described


def test_pods_of_a_drained_node_go_where_they_fit_and_the_others_wait() -> None:
    cluster = build_described(
        a_gpu_node("n1", 2),
        a_gpu_node("n2", 1),
        a_holder("large", "n1", {0: (20000, 0), 1: (20000, 0)}),
        a_holder("small", "n1", {0: (2000, 0)}),
    )
    for pod, memory in zip(cluster.list_kind("Pod"), ("20000", "2000"), strict=True):
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = memory
    plan = plan_drain(cluster, "n1", SETTING)
    assert [(pod.name, pod.state, pod.node) for pod in plan.pods] == [
        ("large", "waits", None),
        ("small", "moves", "n2"),
    ]
    assert plan.sentence.en == "A drain of n1 moves 1 pod; 1 would wait."
    assert plan.pods[0].reason is not None
    assert "fewer devices than one container asks for: 2" in plan.pods[0].reason.en


def test_a_drain_leaves_pods_of_daemon_sets_and_static_pods() -> None:
    daemon, static, web = (a_pod(name, node="n1", cpu="1") for name in ("daemon", "static", "web"))
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "logs", "controller": True}]
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    web["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]
    plan = plan_drain(build_described(a_node("n1"), a_node("n2"), daemon, static, web), "n1", SETTING)
    assert [(pod.name, pod.workload, pod.node) for pod in plan.pods] == [("web", "ReplicaSet/web-1", "n2")]
    assert plan.remaining == 2


@pytest.mark.parametrize(
    ("volume", "is_owned", "flags"),
    [
        (None, True, ""),
        (None, False, " --force"),
        ({"name": "v", "emptyDir": {}}, True, " --delete-emptydir-data"),
        ({"name": "v", "emptyDir": {}}, False, " --delete-emptydir-data --force"),
        ({"name": "v", "configMap": {"name": "c"}}, True, ""),
    ],
)
def test_the_command_has_the_flags_without_which_kubectl_refuses(
    volume: dict[str, Any] | None, is_owned: bool, flags: str
) -> None:
    pod = a_pod("p", node="n1", cpu="1")
    pod["spec"]["volumes"] = [volume] if volume else []
    if is_owned:
        pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]
    plan = plan_drain(build_described(a_node("n1"), a_node("n2"), pod), "n1", SETTING)
    assert plan.commands == ["kubectl cordon n1", f"kubectl drain n1 --ignore-daemonsets{flags}"]


def test_a_node_without_pods_is_drained_at_once() -> None:
    plan = plan_drain(build_described(a_node("n1"), a_node("n2")), "n1", SETTING)
    assert (plan.moves, plan.waits, plan.blocked, plan.remaining, plan.pods) == (0, 0, 0, 0, [])
    moved = plan_drain(build_described(a_node("n1"), a_node("n2"), a_pod("p", node="n1", cpu="1")), "n1", SETTING)
    assert (moved.moves, moved.waits, moved.pods[0].node) == (1, 0, "n2")
    assert moved.sentence.en != plan.sentence.en


def test_a_node_that_does_not_exist_has_no_plan() -> None:
    with pytest.raises(NodeMissingError):
        plan_drain(build_described(a_node("n1")), "n2", SETTING)


@settings(max_examples=25)
@given(clusters())
def test_each_move_is_what_the_judge_decides_on_a_cluster_without_the_node(cluster: SimulationCluster) -> None:
    uses = {use.name: use for use in cluster.columns.list_pod_uses()}
    plan = plan_drain(cluster, "n0", SETTING)
    assert {use.name: use for use in cluster.columns.list_pod_uses()} == uses
    assert {pod.name for pod in plan.pods} == {name for name, use in uses.items() if use.node == "n0"}
    others = [item for item in cluster.objects if "n0" not in (item["metadata"]["name"], item["spec"].get("nodeName"))]
    with placing_pods(build_described(*others)) as placer:
        for moved in plan.pods:
            pod = a_gpu_pod(moved.name, gpu=len(moved.uuids))
            verdict = judge_simulated(placer.cluster, pod, SETTING.identity, SETTING.policy, SETTING.now)
            assert verdict.node == moved.node
            assert (moved.state == "waits") == (moved.node is None) == (moved.reason is not None)
            placer.bind(verdict)
