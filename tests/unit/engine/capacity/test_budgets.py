"""Disruption budgets as the API server's eviction applies them (Kubernetes' pages "API-initiated Eviction" and PDB)."""

from typing import Any

import pytest

from engine.capacity.budgets import Budgets
from engine.capacity.drain import plan_drain
from engine.simulation.cluster import SimulationCluster
from tests.support.builders.capacity import SETTING, a_budget, a_holder, a_replica
from tests.support.builders.simulations import a_gpu_node, build_described

SMALL = {0: (2000, 0)}


def refuse(budget: dict[str, Any], pod: dict[str, Any], *more: dict[str, Any]) -> str:
    refusal = Budgets(build_described(a_gpu_node("n1"), pod, budget, *more)).refuse(pod)
    return refusal.en if refusal else ""


def a_cluster(*objects: dict[str, Any]) -> SimulationCluster:
    return build_described(a_gpu_node("n1"), a_gpu_node("n2"), *objects)


def test_a_budget_that_allows_no_disruption_is_named_with_its_numbers() -> None:
    assert refuse(a_budget("web", "web", 0), a_replica("a", "n1", SMALL)) == (
        "Disruption budget default/web allows no eviction now: it needs 3 healthy pods, and 3 are."
    )
    assert refuse(a_budget("web", "web", 1), a_replica("a", "n1", SMALL)) == ""
    assert refuse(a_budget("web", "other", 0), a_replica("a", "n1", SMALL)) == ""


def test_an_empty_selector_is_every_pod_of_the_namespace_and_a_missing_one_none() -> None:
    missing = a_budget("all", None, 0)
    assert "default/all" in refuse(missing, a_holder("a", "n1", SMALL))
    del missing["spec"]["selector"]
    assert refuse(missing, a_holder("a", "n1", SMALL)) == ""
    elsewhere = a_budget("all", None, 0)
    elsewhere["metadata"]["namespace"] = "other"
    assert refuse(elsewhere, a_holder("a", "n1", SMALL)) == ""


def test_a_pod_of_several_budgets_is_never_evicted() -> None:
    refusal = refuse(a_budget("web", "web", 5), a_replica("a", "n1", SMALL), a_budget("all", None, 5))
    assert refusal.startswith("Several disruption budgets select it (default/web, default/all)")


@pytest.mark.parametrize("status", [{}, {"disruptionsAllowed": 4, "observedGeneration": 1}])
def test_a_budget_that_was_changed_and_not_counted_refuses(status: dict[str, int]) -> None:
    budget = a_budget("web", "web", 4) | {"status": status}
    assert "has not counted its pods yet" in refuse(budget, a_replica("a", "n1", SMALL))


def test_a_number_that_a_budget_has_not_written_is_zero() -> None:
    budget = a_budget("web", "web", 4) | {"status": {"observedGeneration": 2}}
    assert refuse(budget, a_replica("a", "n1", SMALL)) == (
        "Disruption budget default/web allows no eviction now: it needs 0 healthy pods, and 0 are."
    )


@pytest.mark.parametrize(("phase", "is_deleted"), [("Pending", False), ("Running", True)])
def test_a_pod_that_does_not_run_or_is_deleted_uses_up_no_disruption(phase: str, is_deleted: bool) -> None:
    leaving, pod = a_replica("a", "n1", SMALL), a_replica("b", "n1", SMALL)
    leaving["status"]["phase"] = phase
    if is_deleted:
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    budgets = Budgets(build_described(a_gpu_node("n1"), leaving, pod, a_budget("web", "web", 1)))
    assert budgets.refuse(leaving) is None
    budgets.evict(leaving, is_replaced=False)
    assert budgets.refuse(pod) is None
    copied = budgets.copy()
    copied.evict(pod, is_replaced=True)
    assert copied.refuse(pod) is None
    copied.evict(pod, is_replaced=False)
    assert copied.refuse(pod) is not None
    assert budgets.refuse(pod) is None


@pytest.mark.parametrize(
    ("policy", "healthy", "is_refused"), [(None, 3, False), (None, 2, True), ("AlwaysAllow", 2, False)]
)
def test_a_pod_that_is_not_ready_may_go_by_the_policy(policy: str | None, healthy: int, is_refused: bool) -> None:
    pod, budget = a_replica("a", "n1", SMALL), a_budget("web", "web", 0, healthy=healthy)
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    if policy:
        budget["spec"]["unhealthyPodEvictionPolicy"] = policy
    assert bool(refuse(budget, pod)) is is_refused


def test_a_pod_that_has_not_started_needs_no_budget() -> None:
    pod = a_replica("a", "n1", SMALL)
    pod["status"]["phase"] = "Pending"
    assert refuse(a_budget("web", "web", 0), pod) == ""


def test_a_drain_names_the_budget_that_keeps_a_pod() -> None:
    plan = plan_drain(
        a_cluster(a_replica("a", "n1", SMALL), a_holder("b", "n1", SMALL), a_budget("web", "web", 0)), "n1", SETTING
    )
    assert [(pod.name, pod.state, pod.node, pod.budgets) for pod in plan.pods] == [
        ("a", "blocked", None, ["default/web"]),
        ("b", "moves", "n2", []),
    ]
    assert plan.sentence.en == "A drain of n1 moves 1 pod; 0 would wait. Disruption budgets keep 1 there."
    assert (plan.moves, plan.waits, plan.blocked, plan.has_budgets) == (1, 0, 1, True)
    assert plan.commands == ["kubectl cordon n1", "kubectl drain n1 --ignore-daemonsets --force"]


def test_a_replaced_pod_gives_its_disruption_back_and_one_that_waits_does_not() -> None:
    pods = [a_replica(name, "n1", {0: (9000, 0)}) for name in "abc"]
    free = plan_drain(a_cluster(*pods, a_budget("web", "web", 1)), "n1", SETTING)
    # n2 takes two of 9,000 MiB; the third waits and uses the disruption up, after the others.
    assert [pod.state for pod in free.pods] == ["moves", "moves", "waits"]
    full = plan_drain(
        a_cluster(*pods, a_holder("other", "n2", {0: (20000, 0)}), a_budget("web", "web", 1)), "n1", SETTING
    )
    assert [pod.state for pod in full.pods] == ["waits", "blocked", "blocked"]


def test_budgets_that_were_not_listed_are_not_known() -> None:
    assert plan_drain(a_cluster(a_holder("b", "n1", SMALL)), "n1", SETTING).has_budgets is False
