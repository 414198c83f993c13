"""Nodes to buy for what waits: by kind how many, and the pods that no node helps with the reason."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capacity.added_nodes import Addition, adding_nodes
from engine.capacity.purchase import plan_purchase
from engine.simulation.pod_placer import placing_pods
from engine.simulation.verdict import PodOutcome, judge_simulated
from schemas.answers.capacity import Purchase
from schemas.answers.diagnosis import InBothLanguages
from tests.support.builders.capacity import SETTING, a_holder
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, build_described

Object = dict[str, Any]


def a_waiting(name: str, **limits: Any) -> Object:
    return a_gpu_pod(name, **limits) | {"status": {"phase": "Pending"}}


def plan(*objects: Object) -> Purchase:
    return plan_purchase(build_described(*objects), SETTING)


def test_as_many_nodes_of_a_kind_as_the_waiting_pods_fill() -> None:
    full = a_holder("full", "n1", {0: (24576, 100), 1: (24576, 100)})
    pods = [a_waiting(f"p{number}", gpu=1, gpumem=20_000) for number in range(5)]
    answer = plan(a_gpu_node("n1", 2), full, *pods)
    assert [(kind.like, kind.models, kind.nodes, kind.pods) for kind in answer.to_add] == [("n1", ["NVIDIA A10"], 3, 5)]
    assert answer.sentence.en == "3 nodes like n1 let 5 of 5 waiting pods start."
    assert (answer.waiting, answer.starts, answer.not_helped) == (5, 0, [])


def test_what_no_node_would_take_is_named_with_its_reason() -> None:
    gated, full = a_waiting("gated"), a_holder("full", "n1", {0: (24576, 100), 1: (24576, 100)})
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    answer = plan(a_gpu_node("n1", 2), full, gated, a_waiting("large", gpu=3))
    assert answer.to_add == []
    assert answer.sentence.en == "No added node of a kind that the cluster has helps the 2 waiting pods."
    reasons = {group.names[0]: group.reason.en for group in answer.not_helped if group.reason}
    assert "kueue.x-k8s.io/admission" in reasons["default/gated"]
    assert "fewer devices" in reasons["default/large"]


def test_a_pod_that_its_queue_holds_is_not_judged() -> None:
    reason = InBothLanguages(en="It waits for queue team-a.", zh="在队列 team-a 中等待。")
    cluster = build_described(a_gpu_node("n1", 1), a_waiting("p"))
    answer = plan_purchase(cluster, SETTING, {("default", "p"): reason})
    assert [(group.reason, group.names) for group in answer.not_helped] == [(reason, ["default/p"])]
    assert answer.to_add == []


def test_pods_that_start_as_things_are_need_no_node() -> None:
    assert plan(a_gpu_node("n1", 1), a_waiting("p", gpu=1)).sentence.en == (
        "1 waiting pod starts as things are: no node is needed."
    )
    assert plan(a_gpu_node("n1", 1)).sentence.en == "No pod waits."


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([(1, 20_000), (1, 9_000), (2, 12_000), (3, 5_000)]), min_size=1, max_size=5))
def test_the_pods_of_a_kind_start_on_that_many_added_nodes_and_one_node_less_is_too_few(
    shapes: list[tuple[int, int]],
) -> None:
    full = [a_holder("full", "n1", {0: (24576, 100), 1: (24576, 100)})]
    pods = [a_waiting(f"p{number}", gpu=gpu, gpumem=memory) for number, (gpu, memory) in enumerate(shapes)]
    answer = plan(a_gpu_node("n1", 2), *full, *pods)
    assert {name for kind in answer.to_add for name in kind.names} == {
        f"default/p{number}" for number, (gpu, _) in enumerate(shapes) if gpu < 3
    }
    for kind in answer.to_add:
        wanted = [pod for pod in pods if f"default/{pod['metadata']['name']}" in kind.names]
        ordered = sorted(wanted, key=lambda pod: kind.names.index(f"default/{pod['metadata']['name']}"))
        assert count_starting(ordered, full, kind.nodes) == len(ordered)
        if kind.nodes > 1:
            assert count_starting(ordered, full, kind.nodes - 1) < len(ordered)


def count_starting(pods: list[Object], others: list[Object], nodes: int) -> int:
    """Count the pods that start one after the other on a cluster with so many empty nodes, described again."""
    cluster = build_described(a_gpu_node("n1", 2), *others)
    with adding_nodes(cluster, [Addition("n1", nodes)]) as (extended, _), placing_pods(extended) as placer:
        verdicts = []
        for pod in pods:
            verdict = judge_simulated(placer.cluster, pod, SETTING.identity, SETTING.policy, SETTING.now)
            placer.bind(verdict)
            verdicts.append(verdict)
        return sum(verdict.outcome is PodOutcome.FITS for verdict in verdicts)
