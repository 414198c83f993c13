"""Creation of a pod by the API server: classes, and amounts of LimitRanges, as Kubernetes' pages describe them."""

from typing import Any

import pytest

from engine.simulation.creation import CreatedPod, create_pod
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.simulations import build_described

Object = dict[str, Any]


def a_class(name: str, value: int, **fields: Any) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            **fields}  # fmt: skip


LOW, HIGH = a_class("low", -5, globalDefault=True), a_class("high", 1000, preemptionPolicy="Never")
RUNTIME = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"gpu": "yes"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]},
}
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"namespace": "default", "name": "defaults"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}, "default": {"cpu": "1"}}]},
}


def create(spec: Object, *objects: Object) -> CreatedPod:
    pod = a_pod("p")
    pod["spec"] |= spec
    return create_pod(build_described(a_node("n1"), *objects), pod)


@pytest.mark.parametrize(
    ("spec", "name", "priority", "policy"),
    [
        ({"priorityClassName": "high"}, "high", 1000, "Never"),
        # "globalDefault": the class of pods that name none.
        ({}, "low", -5, None),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "high",
            1000,
            "PreemptLowerPriority",
        ),
    ],
)
def test_a_pod_has_the_priority_of_its_class_or_of_the_default_one(
    spec: Object, name: str, priority: int, policy: str | None
) -> None:
    created = create(spec, HIGH, LOW).pod["spec"]
    assert (created["priorityClassName"], created["priority"]) == (name, priority)
    assert created.get("preemptionPolicy") == policy


def test_without_a_default_class_the_pod_has_no_priority() -> None:
    assert "priority" not in create({}, HIGH).pod["spec"]


def test_a_runtime_class_adds_overhead_selector_and_tolerations() -> None:
    spec = {
        "runtimeClassName": "nvidia",
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "x", "operator": "Exists"}],
    }
    created = create(spec, RUNTIME).pod["spec"]
    assert created["overhead"] == {"cpu": "250m"}
    assert created["nodeSelector"] == {"zone": "a", "gpu": "yes"}
    assert [toleration["key"] for toleration in created["tolerations"]] == ["x", "gpu"]
    assert not {"overhead", "nodeSelector", "tolerations"} & set(create({}, RUNTIME).pod["spec"])


@pytest.mark.parametrize(
    ("spec", "objects", "nearest"),
    [
        ({"priorityClassName": "hihg"}, [HIGH, LOW], "high"),
        ({"priorityClassName": "x"}, [HIGH, LOW], ""),
        ({"runtimeClassName": "nvidai"}, [RUNTIME], "nvidia"),
    ],
)
def test_a_class_that_does_not_exist_refuses_the_pod(spec: Object, objects: list[Object], nearest: str) -> None:
    refusal = create(spec, *objects).refusal
    assert refusal is not None
    assert refusal.code == "PodClassMissing"
    assert (refusal.words["name"], refusal.words["nearest"]) == (next(iter(spec.values())), nearest)
    assert list(refusal.clauses) == (["nearest"] if nearest else [])


@pytest.mark.parametrize(
    ("spec", "objects"),
    [
        ({"priorityClassName": "system-node-critical"}, [HIGH]),
        ({"priorityClassName": "x"}, [RUNTIME]),
        ({"runtimeClassName": "x"}, [HIGH]),
    ],
)
def test_classes_that_kubernetes_has_or_that_were_not_read_refuse_nothing(spec: Object, objects: list[Object]) -> None:
    assert create(spec, *objects).refusal is None


def test_a_limit_range_gives_amounts_to_containers_that_name_none() -> None:
    containers = [{"name": "a"}, {"name": "b", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}]
    created = create({"containers": containers}, LIMITS)
    resources = [container["resources"] for container in created.pod["spec"]["containers"]]
    assert resources == [
        {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
    ]
    (note,) = created.notes
    assert note.code == "LimitRangeAdds"
    assert "requests.cpu: 100m, limits.cpu: 1" in note.text.en
    elsewhere = {**LIMITS, "metadata": {"namespace": "other", "name": "defaults"}}
    assert create({"containers": containers}, elsewhere).notes == ()


def test_a_pod_of_the_cluster_remains_as_it_is() -> None:
    cluster = build_described(a_node("n1"), a_pod("p", node="n1"), LOW, LIMITS)
    created = create_pod(cluster, a_pod("p", node="n1"))
    assert ("priority" in created.pod["spec"], created.notes) == (False, ())
