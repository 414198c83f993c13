"""Copies of a pod on each node: amounts divided by hand, and rules by which a copy decides about other nodes."""

from dataclasses import replace
from typing import Any

import pytest

from engine.capacity.per_node import MAX_COPIES, count_by_resources, has_rules, measure_capacity
from engine.simulation.verdict import PodVerdict, judge_simulated
from engine.simulation.workloads import PodTemplate
from tests.support.builders.capacity import SETTING, a_holder
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described

Object = dict[str, Any]


def count_copies(pod: Object, *objects: Object) -> dict[str, int]:
    template = PodTemplate("Pod", pod["metadata"]["name"], pod, 1, {})
    return dict(measure_capacity(build_described(*objects), template, SETTING).copies)


def judge(pod: Object, *objects: Object) -> PodVerdict:
    return judge_simulated(build_described(*objects), pod, SETTING.identity, SETTING.policy, SETTING.now)


@pytest.mark.parametrize(
    ("requests", "copies"),
    [
        # The node has 8 CPU and 16Gi, of which a pod holds 1 CPU and 4Gi, and 110 places for pods.
        ({"cpu": "2"}, 3),
        ({"cpu": "7"}, 1),
        ({"cpu": "500m"}, 14),
        ({"memory": "4Gi"}, 3),
        ({"cpu": "1", "memory": "4Gi"}, 3),
        ({"cpu": "1", "memory": "1Gi"}, 7),
        ({"cpu": "0"}, 109),
        ({}, 109),
    ],
)
def test_a_node_takes_as_many_copies_as_its_scarcest_amount_allows(requests: Any, copies: int) -> None:
    holder = a_pod("holder", node="n1", cpu="1", memory="4Gi")
    assert count_copies(a_pod("p", **requests), a_node("n1"), holder) == {"n1": copies}


def test_full_nodes_are_left_out() -> None:
    full = a_pod("full", node="n2", cpu="7500m")
    assert count_copies(a_pod("p", cpu="1"), a_node("n1"), a_node("n2"), full) == {"n1": 8}
    assert count_copies(a_pod("p", cpu="9"), a_node("n1")) == {}


def test_devices_and_amounts_both_limit_copies() -> None:
    # Two devices of 24,576 MiB: two copies of 10,000 on each. One device less where a pod holds 20,000 MiB of it.
    node, pod = a_gpu_node("n1", 2), a_gpu_pod("p", gpu=1, gpumem=10_000)
    assert count_copies(pod, node) == {"n1": 4}
    assert count_copies(pod, node, a_holder("h", "n1", {0: (20_000, 0)})) == {"n1": 2}
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "3"}
    assert count_copies(pod, node) == {"n1": 2}


CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]}


@pytest.mark.parametrize(
    ("spec", "is_ruled"),
    [
        ({}, False),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}, False),
        ({"affinity": {"podAffinity": TERMS}}, True),
        ({"affinity": {"podAntiAffinity": TERMS}}, True),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, True),
        ({"resourceClaims": [{"name": "gpu"}]}, True),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, False),
        ({"volumes": [{"name": "w", "emptyDir": {}}, CLAIM]}, True),
        ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}, True),
        ({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}, False),
        ({"containers": [{"name": "c", "ports": [{"containerPort": 80}, {"hostPort": 80}]}]}, True),
    ],
)
def test_a_copy_decides_about_other_nodes_by_rules_volumes_claims_and_host_ports(spec: Object, is_ruled: bool) -> None:
    verdict = judge(a_pod("p"), a_node("n1"))
    assert has_rules(replace(verdict, pod={**verdict.pod, "spec": spec})) is is_ruled


def test_copies_with_host_ports_are_placed_one_after_the_other() -> None:
    pod = a_pod("p", cpu="1")
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    assert count_copies(pod, a_node("n1"), a_node("n2")) == {"n1": 1, "n2": 1}


def test_copies_that_avoid_each_other_are_on_different_nodes() -> None:
    pod = a_pod("p", labels={"app": "x"}, cpu="1")
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    holder = a_pod("holder", node="n1", labels={"app": "x"})
    assert count_copies(pod, a_node("n1"), a_node("n2"), a_node("n3"), holder) == {"n2": 1, "n3": 1}


def test_of_a_node_that_was_not_read_no_amount_limits_copies() -> None:
    verdict = judge(a_pod("p", cpu="1"), a_node("n1"))
    assert count_by_resources(verdict, None) == MAX_COPIES


def test_a_node_that_holds_more_than_it_has_takes_no_copy() -> None:
    cluster = build_described(a_node("n1"), a_pod("a", node="n1", cpu="9"))
    verdict = judge(a_pod("p", cpu="1"), a_node("n1"))
    assert count_by_resources(verdict, cluster.snapshot.nodes["n1"]) == 0
