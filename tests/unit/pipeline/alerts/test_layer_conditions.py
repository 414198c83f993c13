"""Kinds of rules about queues, gangs, kubelets and autoscalers: when each fires, for what, and when it resolves."""

from pathlib import Path
from typing import Any

from pipeline.alerts.inputs import AlertInput
from schemas.events import (
    Condition,
    ObjectProblem,
    Owner,
    PodDescription,
    PodObserved,
    PodRef,
    PodWait,
    WorkloadObserved,
)
from tests.support.builders.alert_inputs import list_shown, load_rules, run, to_time

GATED = Condition(type="PodScheduled", status="False", reason="SchedulingGated")
REFUSED = Condition(type="PodScheduled", status="False", reason="Unschedulable")
QUEUE = {"cluster": "default", "namespace": "ml", "queue": "night"}
GROUP = {"cluster": "default", "namespace": "ml", "pod_group": "ring"}


def an_observation(time: float, name: str = "a", **fields: Any) -> tuple[float, PodObserved]:
    """A pod at a time in minutes; ``fields``: those of the observation, and ``queue`` and ``pod_group``."""
    marks = {key: fields.pop(key) for key in ("queue", "pod_group") if key in fields}
    observed = {
        "cluster": "default", "pod": PodRef(namespace="ml", name=name, uid=name), "observed_at": to_time(time),
        "phase": "Pending", "scheduler": "default-scheduler", "description": PodDescription(**marks),
    }  # fmt: skip
    return time, PodObserved.model_validate(observed | fields)


def hold(time: float, name: str = "a") -> tuple[float, AlertInput]:
    return an_observation(time, name, queue="night", conditions=[GATED], gates=["kueue.x-k8s.io/admission"])


def test_a_queue_that_lets_no_pod_go_fires_until_it_does(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: queue", "for_minutes: 60")
    alerts = run(rules, [hold(0), hold(20, "b"), an_observation(90, "a", queue="night", node="n1")], 100)
    assert list_shown(alerts) == [("firing", 60, QUEUE), ("resolved", 90.25, QUEUE)]
    assert alerts[0].numbers == {"blocked_minutes": 60, "pods": 2}
    assert alerts[0].summary.startswith("queue night of ml has let no pod go for 60 minutes, and 2 pods wait")
    assert alerts[0].summary_zh.startswith("ml 的队列 night 已有 60 分钟没有放行任何 Pod，其中 2 个在等待：")
    assert alerts[0].query["api"] == "/api/v1/clusters/default/namespaces/ml/pods/a/diagnosis"


def test_a_queue_that_lets_one_pod_go_now_and_then_is_not_blocked(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: queue", "for_minutes: 60")
    placed = [an_observation(time, f"p{time}", queue="night", node="n1") for time in (50, 100, 150)]
    assert run(rules, [hold(0), *placed], 200) == []


def a_workload(time: float, *, is_over: bool = False, code: str = "KueueWaitsForQuota") -> tuple[float, AlertInput]:
    """A suspended Job without pods, observed at a time in minutes."""
    wait = PodWait(code=code, sentence_en="…", models=[], pools=[], nearest_nodes=[], reasons={})
    problem = ObjectProblem(reason=code, message="…", at=to_time(time))
    return time, WorkloadObserved(
        cluster="default", namespace="ml", workload=Owner(kind="Job", name="train"), observed_at=to_time(time),
        problem=problem, wait=None if is_over else wait, is_over=is_over, queue="night", created_at=to_time(0),
    )  # fmt: skip


def test_a_job_without_pods_blocks_its_queue_until_it_has_some(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: queue", "for_minutes: 60")
    alerts = run(rules, [a_workload(1), a_workload(90, is_over=True)], 100)
    assert list_shown(alerts) == [("firing", 60, QUEUE), ("resolved", 90.25, QUEUE)]
    assert "and job/train waits" in alerts[0].summary
    assert alerts[0].query["api"] == "/api/v1/clusters/default/pending?namespace=ml&group_by=pod"


def test_a_job_that_another_layer_holds_does_not_block_its_queue(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: queue", "for_minutes: 60")
    assert run(rules, [a_workload(1, code="GangIncomplete")], 200) == []


def test_a_gate_of_another_controller_is_no_queue(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: queue", "for_minutes: 60")
    gated = an_observation(0, queue="night", conditions=[GATED], gates=["example.com/license"])
    assert run(rules, [gated], 200) == []


def test_a_deleted_pod_does_not_block_its_queue(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: queue", "for_minutes: 60")
    assert run(rules, [hold(0), an_observation(30, queue="night", deleted=True)], 200) == []


def test_a_group_without_a_node_fires_and_resolves_with_its_first_node(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: gang", "for_minutes: 30")
    waiting = [
        an_observation(0, "m0", pod_group="ring"),
        an_observation(1, "m1", pod_group="ring", conditions=[REFUSED]),
    ]
    alerts = run(rules, [*waiting, an_observation(50, "m1", pod_group="ring", node="n1")], 60)
    assert list_shown(alerts) == [("firing", 30, GROUP), ("resolved", 50.25, GROUP)]
    assert alerts[0].numbers == {"waiting_minutes": 30, "pods": 2}
    assert alerts[0].summary_zh.startswith("ml 的组 ring 有 2 个 Pod 已等待 30 分钟，且没有一个获得节点：")


def test_a_group_that_its_queue_holds_is_the_queues_case(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: gang", "for_minutes: 30")
    gates = {"conditions": [GATED], "gates": ["kueue.x-k8s.io/admission"], "queue": "night"}
    assert run(rules, [an_observation(0, "m0", pod_group="ring", **gates)], 60) == []


def test_refusals_of_a_kubelet_fire_by_their_number_and_each_pod_counts_once(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: kubelet", "at_least: 3", "window_minutes: 15")

    def refuse(time: float, name: str) -> tuple[float, PodObserved]:
        problem = ObjectProblem(reason="UnexpectedAdmissionError", message="…", at=to_time(time))
        return an_observation(time, name, phase="Failed", node="n1", problems=[problem])

    labels = {"cluster": "default", "node": "n1", "reason": "UnexpectedAdmissionError"}
    assert run(rules, [refuse(time, "same") for time in (0, 1, 2)], 20) == []
    alerts = run(rules, [refuse(0, "a"), refuse(1, "b"), refuse(2, "c")], 120)
    assert list_shown(alerts) == [("firing", 2.25, labels)], "nobody has replaced them"
    assert alerts[0].numbers == {"refused_pods": 3}
    assert alerts[0].summary_zh.startswith("n1 的 kubelet 已拒绝 3 个 Pod（最近 15 分钟内，或此后没有替代者）")
    replaced = refuse(0, "a")[1].model_copy(update={"replaced_by": "a2"})
    for ended in (replaced, an_observation(0, "a", deleted=True)[1]):
        alerts = run(rules, [refuse(0, "a"), refuse(1, "b"), refuse(2, "c"), (30, ended)], 60)
        assert list_shown(alerts) == [("firing", 2.25, labels), ("resolved", 30.25, labels)]


def test_a_pod_that_ran_and_failed_was_not_refused(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: kubelet", "at_least: 1")
    problem = ObjectProblem(reason="Error", message="exit code 1", at=to_time(0))
    failed = an_observation(0, phase="Failed", node="n1", problems=[problem], started_at=to_time(-5))
    assert run(rules, [failed], 20) == []


def test_an_autoscaler_without_a_node_fires_with_its_words(tmp_path: Path) -> None:
    rules = load_rules(tmp_path, "kind: autoscaler", "for_minutes: 30", "forget_minutes: 20")

    def report(time: float) -> tuple[float, AlertInput]:
        words = "pod didn't trigger scale-up: 1 max node group size reached"
        problem = ObjectProblem(
            reason="NotTriggerScaleUp", message=words, at=to_time(time), reported_by="cluster-autoscaler"
        )
        return an_observation(time, phase="", problems=[problem])

    alerts = run(rules, [report(time) for time in range(0, 50, 5)], 80)
    assert list_shown(alerts) == [("firing", 30, {"cluster": "default"}), ("resolved", 65.25, {"cluster": "default"})]
    assert "1 max node group size reached" in alerts[0].summary
    assert alerts[0].summary_zh.startswith("自动扩容已有 30 分钟无法为 ml/a 提供节点：pod didn't trigger")
    assert run(rules, [report(0), an_observation(10, node="n1"), report(9)], 60) == []
