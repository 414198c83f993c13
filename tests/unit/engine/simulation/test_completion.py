"""Objects that were cut short, completed by the rules of the Kubernetes API, with what is assumed."""

from typing import Any

import pytest

from engine.simulation.completion import complete_objects

UNLIMITED = {"cpu": "1000000", "memory": "1Ei", "ephemeral-storage": "1Ei", "pods": "1000000"}


def complete(item: Any) -> Any:
    (completed,), _ = complete_objects([item])
    return completed


@pytest.mark.parametrize(
    ("status", "capacity", "allocatable"),
    [
        ({}, {}, UNLIMITED),
        # As the API server, which takes the capacity for a node that names nothing else.
        ({"capacity": {"cpu": "8"}}, {"cpu": "8"}, {**UNLIMITED, "cpu": "8"}),
        ({"allocatable": {"cpu": "4"}}, {}, {**UNLIMITED, "cpu": "4"}),
        # A capacity without an allocatable amount is an amount of which nothing is given away.
        (
            {"capacity": {"cpu": "8", "pods": "9"}, "allocatable": {"cpu": "4"}},
            {"cpu": "8", "pods": "9"},
            {"cpu": "4", "memory": "1Ei", "ephemeral-storage": "1Ei"},
        ),
    ],
)
def test_native_amounts_that_a_node_does_not_name_are_unlimited(
    status: dict[str, Any], capacity: dict[str, str], allocatable: dict[str, str]
) -> None:
    completed = complete({"kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [], **status}})
    assert completed["status"] == {"conditions": [], "capacity": capacity, "allocatable": allocatable}


def test_assumed_amounts_are_named_with_their_nodes() -> None:
    full, partial = UNLIMITED, {name: amount for name, amount in UNLIMITED.items() if name != "pods"}
    nodes = [
        {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": amounts}}
        for name, amounts in (("a", full), ("b", partial))
    ]
    assert complete_objects(nodes)[1].amounts == {"pods": ("b",)}


@pytest.mark.parametrize(
    ("phase", "volume", "annotations", "completed"),
    [
        ("Bound", "pv", {"a": "b"}, {"a": "b", "pv.kubernetes.io/bind-completed": "yes"}),
        ("Bound", "pv", {"pv.kubernetes.io/bind-completed": "true"}, {"pv.kubernetes.io/bind-completed": "true"}),
        ("Bound", "", {}, {}),
        ("Pending", "pv", {}, {}),
    ],
)
def test_a_bound_claim_has_the_mark_of_its_binding(
    phase: str, volume: str, annotations: dict[str, str], completed: dict[str, str]
) -> None:
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "annotations": annotations},
        "spec": {"volumeName": volume},
        "status": {"phase": phase},
    }
    assert complete(claim)["metadata"] == {"name": "c", "annotations": completed}


def a_claim(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ResourceClaim", "spec": {"devices": {"requests": list(requests)}}}


def test_classes_that_claims_name_are_added_where_no_class_was_read() -> None:
    template = {"kind": "ResourceClaimTemplate", "spec": a_claim({"deviceClassName": "old"})}
    claim = a_claim(
        {"exactly": {"deviceClassName": "b"}}, {"firstAvailable": [{"deviceClassName": "c"}, {"deviceClassName": "b"}]}
    )
    objects, assumptions = complete_objects([claim, template, "x"])
    assert assumptions.device_classes == ("b", "c", "old")
    assert [item["metadata"]["name"] for item in objects[3:]] == ["b", "c", "old"]
    assert all((item["kind"], item["spec"]) == ("DeviceClass", {}) for item in objects[3:])
    assert objects[:3] == [claim, template, "x"]


def test_no_class_is_added_where_classes_were_read_or_listed() -> None:
    claim = a_claim({"exactly": {"deviceClassName": "b"}})
    read = {"kind": "DeviceClass", "metadata": {"name": "a"}}
    assert complete_objects([claim, read]) == ([claim, read], ({}, ()))
    assert complete_objects([claim], has_classes=True) == ([claim], ({}, ()))
