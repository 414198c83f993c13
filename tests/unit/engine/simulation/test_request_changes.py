"""Amounts of a pod lowered by what is missing: subtraction by hand, in the field that names the amount."""

from typing import Any

import pytest

from engine.simulation.change_trial import ChangeTrial
from engine.simulation.request_changes import iterate_creation_trials, lower_request
from engine.simulation.verdict import judge_simulated
from tests.support.builders.capacity import SETTING
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import build_described


def a_container(name: str, request: str | None = None, **limits: str) -> dict[str, Any]:
    requests = {"requests": {"cpu": request}} if request else {}
    return {"name": name, "resources": {**requests, **({"limits": limits} if limits else {})}}


def lower(spec: dict[str, Any], amount: int, free: int, resource: str = "cpu") -> tuple[Any, str, str, str] | None:
    """Lower a request, and return the spec with the path and the texts of the edit."""
    lowered = lower_request({"spec": spec}, resource, amount, free)
    return lowered and (lowered[0]["spec"], lowered[1].where, lowered[1].before, lowered[1].after)


def test_the_largest_container_gives_what_is_missing() -> None:
    spec = {"containers": [a_container("a", "1"), a_container("b", "4", cpu="6", memory="1Gi"), a_container("c", "2")]}
    lowered = lower(spec, 7000, 5500)
    assert lowered is not None
    changed, *edit = lowered
    assert edit == ["b: cpu", "4", "2.5"]
    resources = {"requests": {"cpu": "2500m"}, "limits": {"cpu": "2500m", "memory": "1Gi"}}
    assert changed["containers"] == [
        spec["containers"][0],
        {"name": "b", "resources": resources},
        spec["containers"][2],
    ]


def test_an_init_container_may_be_the_largest() -> None:
    spec = {"initContainers": [a_container("i", "9")], "containers": [a_container("a", "1")]}
    lowered = lower(spec, 9000, 8000)
    assert lowered is not None
    assert lowered[1:] == ("i: cpu", "9", "8")
    assert lowered[0]["initContainers"][0]["resources"] == {"requests": {"cpu": "8000m"}}
    assert lowered[0]["containers"] == spec["containers"]


def test_the_request_of_the_whole_pod_is_lowered_before_those_of_containers() -> None:
    level = {"requests": {"cpu": "6", "memory": "1Gi"}, "limits": {"cpu": "8"}}
    spec = {"containers": [a_container("a", "1")], "resources": level}
    lowered = lower(spec, 6500, 5000)
    assert lowered is not None
    assert lowered[1:] == ("spec.resources: cpu", "6", "4.5")
    assert lowered[0]["resources"] == {"requests": {"cpu": "4500m", "memory": "1Gi"}, "limits": {"cpu": "4500m"}}
    assert lowered[0]["containers"] == spec["containers"]


@pytest.mark.parametrize(("free", "after"), [(1001, "1m"), (1000, None), (0, None)])
@pytest.mark.parametrize("is_pod_level", [False, True])
def test_nothing_is_lowered_to_zero(free: int, after: str | None, is_pod_level: bool) -> None:
    spec: dict[str, Any] = {"containers": [a_container("a", "2")]}
    if is_pod_level:
        spec["resources"] = {"requests": {"cpu": "2"}}
    lowered = lower(spec, 3000, free)
    assert (lowered and lowered[3]) == after


def test_amounts_of_other_resources_are_plain_numbers() -> None:
    spec = {"containers": [{"name": "a", "resources": {"requests": {"memory": "4Gi"}, "limits": {"memory": "4Gi"}}}]}
    lowered = lower(spec, 2**32, 2**31, "memory")
    assert lowered is not None
    assert lowered[1:] == ("a: memory", "4Gi", "2Gi")
    assert lowered[0]["containers"][0]["resources"]["limits"] == {"memory": str(2**31)}


def test_the_share_that_is_given_up_ranks_the_change() -> None:
    lowered = lower_request({"spec": {"containers": [a_container("a", "4")]}}, "cpu", 4000, 3000)
    assert lowered is not None
    assert lowered[1].share == 0.25
    of_pod = {"spec": {"resources": {"requests": {"cpu": "4"}}}}
    lowered = lower_request(of_pod, "cpu", 4000, 1000)
    assert lowered is not None
    assert lowered[1].share == 0.75


@pytest.mark.parametrize("spec", [{}, {"containers": []}, {"containers": [a_container("a", "x")]}])
def test_a_pod_without_the_amount_has_nothing_to_lower(spec: dict[str, Any]) -> None:
    assert lower(spec, 2000, 1000) is None


def list_creation_trials(pod: dict[str, Any], *objects: dict[str, Any]) -> list[ChangeTrial]:
    cluster = build_described(a_node("n1"), *objects)
    verdict = judge_simulated(cluster, pod, SETTING.identity, SETTING.policy, SETTING.now)
    return list(iterate_creation_trials(cluster, verdict))


def test_amounts_above_the_bound_of_a_limit_range_are_cut_to_it() -> None:
    bound = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"namespace": "default", "name": "max"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
    }
    pod = a_pod("p")
    pod["spec"]["containers"] = [a_container("a", "1", cpu="4"), a_container("b", "1", cpu="2")]
    (trial,) = list_creation_trials(pod, bound)
    assert [(edit.where, edit.before, edit.after, edit.share) for edit in trial.edits] == [("a: cpu", "4", "2", 0.5)]
    first, second = trial.pod["spec"]["containers"]
    assert first["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2000m"}}
    assert second["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("entry", "used", "edits"),
    [
        # 3 CPU in all, of which the pod of 2 leaves 1 or needs one more.
        ("requests.cpu", "2", [("request", "2", "1"), ("quota", "3", "4")]),
        ("cpu", "2", [("request", "2", "1"), ("quota", "3", "4")]),
        # Where nothing is left, or limits count, only the quota helps.
        ("requests.cpu", "3", [("quota", "3", "5")]),
        ("limits.cpu", "2", [("quota", "3", "4")]),
    ],
)
def test_a_pod_beyond_a_quota_asks_for_less_or_the_quota_is_raised(
    entry: str, used: str, edits: list[tuple[str, str, str]]
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"namespace": "default", "name": "q"},
        "spec": {"hard": {entry: "3"}},
        "status": {"hard": {entry: "3"}, "used": {entry: used}},
    }
    pod = a_pod("p")
    pod["spec"]["containers"] = [a_container("a", "2", cpu="2")]
    trials = list_creation_trials(pod, quota)
    assert [(edit.constraint, edit.before, edit.after) for trial in trials for edit in trial.edits] == edits
    (raised,) = trials[-1].objects
    assert raised["spec"]["hard"] == {entry: f"{edits[-1][2]}000m"}
