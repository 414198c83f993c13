"""One Node object, as far as kube-scheduler looks at it."""

from dataclasses import dataclass
from typing import Any

from engine.snapshot.fields import (
    Object,
    read_bool,
    read_items,
    read_labels,
    read_mapping,
    read_nanos,
    read_text,
    read_texts,
)
from engine.snapshot.quantity import round_amounts
from engine.snapshot.requests import Amounts
from engine.snapshot.selectors import Labels


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node. Amounts are in the units of `Amounts`."""

    name: str
    labels: Labels
    taints: tuple[Taint, ...]
    is_unschedulable: bool
    allocatable: Amounts
    capacity: Amounts
    declared_features: frozenset[str]
    object: Any
    """The object as it was read."""


def read_node(node: Object) -> Node:
    """Read a Node object; raise FieldError if a field has the wrong type."""
    metadata, spec, status = (read_mapping(node, key) for key in ("metadata", "spec", "status"))
    return Node(
        name=read_text(metadata, "name", "metadata"),
        labels=read_labels(metadata, "labels", "metadata"),
        taints=tuple(_read_taint(taint, location) for location, taint in read_items(spec, "taints", "spec")),
        is_unschedulable=read_bool(spec, "unschedulable", "spec"),
        allocatable=round_amounts(read_nanos(status, "allocatable", "status")),
        capacity=round_amounts(read_nanos(status, "capacity", "status")),
        declared_features=frozenset(read_texts(status, "declaredFeatures", "status")),
        object=node,
    )


def _read_taint(taint: Object, path: str) -> Taint:
    key, value, effect = (read_text(taint, field, path) for field in ("key", "value", "effect"))
    return Taint(key, value, effect)
