"""Objects that were written by hand or cut short, completed where every real object has more than they say.

A node without amounts of CPU, memory or pods says nothing about them, and a judge would take them for zero. What is
assumed is part of the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.json_types import Json

_NATIVE: Final[Mapping[str, str]] = {"cpu": "1000000", "memory": "1Ei", "ephemeral-storage": "1Ei", "pods": "1000000"}
"""Amounts that no pod reaches, for nodes that name none."""
_BOUND: Final = "pv.kubernetes.io/bind-completed"
_DRA: Final = "resource.k8s.io"


class Assumptions(NamedTuple):
    """Facts that the objects leave open, and that were assumed."""

    amounts: Mapping[str, tuple[str, ...]]
    """Native resources of which nodes name no amount, with the nodes; they count as unlimited."""
    device_classes: tuple[str, ...]
    """Device classes that claims name and that are not among the objects; they count as selecting every device."""


def complete_objects(objects: Iterable[Any], *, has_classes: bool = False) -> tuple[list[Any], Assumptions]:
    """Complete nodes, bound claims and device classes; other objects stay as they are.

    has_classes: whether the objects have all device classes, even if there is none.
    """
    amounts: dict[str, list[str]] = {}
    completed: list[Any] = []
    for item in objects:
        kind = item.get("kind") if isinstance(item, Mapping) else None
        if kind == "Node":
            completed.append(_complete_node(item, amounts))
        elif kind == "PersistentVolumeClaim":
            completed.append(_complete_claim(item))
        else:
            completed.append(item)
    classes = [] if has_classes else _list_missing_classes(completed)
    completed += [_build_class(name) for name in classes]
    return completed, Assumptions({name: tuple(nodes) for name, nodes in amounts.items()}, tuple(classes))


def _complete_node(node: Mapping[str, Any], assumed: dict[str, list[str]]) -> Json:
    status = get_object(node, "status")
    capacity = dict(get_object(status, "capacity"))
    # As the API server does with a node that names only what it has.
    allocatable = (
        dict(get_object(status, "allocatable")) if isinstance(status.get("allocatable"), Mapping) else dict(capacity)
    )
    for resource, amount in _NATIVE.items():
        if resource not in allocatable and resource not in capacity:
            allocatable[resource] = amount
            assumed.setdefault(resource, []).append(get_text(node, "metadata", "name"))
    return {**node, "status": {**status, "capacity": capacity, "allocatable": allocatable}}


def _complete_claim(claim: Mapping[str, Any]) -> Json:
    """Write the mark of a finished binding, which people cut off, into a claim that is bound."""
    is_bound = get_text(claim, "status", "phase") == "Bound" and get_text(claim, "spec", "volumeName")
    metadata, annotations = get_object(claim, "metadata"), get_object(claim, "metadata", "annotations")
    if not is_bound or _BOUND in annotations:
        return dict(claim)
    return {**claim, "metadata": {**metadata, "annotations": {**annotations, _BOUND: "yes"}}}


def _list_missing_classes(objects: Sequence[Any]) -> list[str]:
    """List the classes that claims name, where no class at all was read."""
    mappings = [item for item in objects if isinstance(item, Mapping)]
    if any(item.get("kind") == "DeviceClass" for item in mappings):
        return []
    specs = [get_object(item, "spec") for item in mappings if item.get("kind") == "ResourceClaim"]
    specs += [get_object(item, "spec", "spec") for item in mappings if item.get("kind") == "ResourceClaimTemplate"]
    requests = [request for spec in specs for request in iterate_objects(spec, "devices", "requests")]
    return sorted({name for request in requests for name in _list_classes(request)})


def _list_classes(request: Mapping[str, Any]) -> list[str]:
    alternatives = [get_object(request, "exactly"), request, *iterate_objects(request, "firstAvailable")]
    return [name for alternative in alternatives if (name := get_text(alternative, "deviceClassName"))]


def _build_class(name: str) -> Json:
    return {"apiVersion": f"{_DRA}/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}
