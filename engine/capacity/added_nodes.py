"""Nodes added to a simulated cluster: empty, open and healthy copies of nodes that it has."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.simulation.cluster import DescribedObjects, SimulationCluster
from engine.snapshot.reading import change_snapshot
from runtime.kubernetes.object_fields import get_object
from schemas.json_types import Json

MAX_ADDED: Final = 1_000
"""Limit of added nodes."""
_HOST: Final = "kubernetes.io/hostname"
_WRITTEN: Final = re.compile(r"(?:like:)?([a-z0-9][a-z0-9.-]*)(?:=([0-9]{1,4}))?")
_CORDON: Final = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Addition:
    """A number of nodes like one of the cluster's."""

    like: str
    count: int


class AdditionError(ValueError):
    """Text or node that no addition can be made of; the text says what to write."""


def parse_additions(text: str) -> list[Addition]:
    """Parse additions, divided by commas; none of an empty text. Raises `AdditionError`."""
    return [parse_addition(part) for part in text.split(",")] if text else []


def parse_addition(text: str) -> Addition:
    """Parse ``like:NODE=COUNT``. Raises `AdditionError`."""
    match = _WRITTEN.fullmatch(text)
    count = int(match[2] or "1") if match else 0
    if match is None or not 1 <= count <= MAX_ADDED:
        raise AdditionError(f"{text!r} is no addition, write like:NODE=COUNT with a count of 1 to {MAX_ADDED}")
    return Addition(match[1], count)


def to_no_node_error(addition: Addition) -> AdditionError:
    return AdditionError(f"the cluster has no node {addition.like}, name one that it has")


@contextmanager
def adding_nodes(
    cluster: SimulationCluster, additions: Sequence[Addition]
) -> Iterator[tuple[SimulationCluster, list[str]]]:
    """Cluster with added nodes, and their names; its columns hold them until the end of the context.

    Raises `AdditionError` for a node that the cluster does not have.
    """
    nodes = cluster.get_nodes()
    names: list[str] = []
    objects: list[Json] = []
    try:
        for addition in additions:
            if not (addition.like in nodes or cluster.columns.get_entry(addition.like)):
                raise to_no_node_error(addition)
            for name in iterate_names(addition, {*nodes, *names}):
                register_copy(cluster.columns, addition.like, name)
                names.append(name)
                if addition.like in nodes:
                    objects.append(_build_node(nodes[addition.like], name))
        yield _extend(cluster, objects, names), names
    finally:
        for name in names:
            cluster.columns.delete_node(name)


def iterate_names(addition: Addition, present: set[str]) -> Iterator[str]:
    """Iterate over names for the added nodes that no present node has."""
    number = 0
    for _ in range(addition.count):
        number += 1
        while f"{addition.like}-added-{number}" in present:
            number += 1
        yield f"{addition.like}-added-{number}"


def register_copy(columns: ClusterColumns, like: str, name: str) -> None:
    """Register the devices of a node once more, all of them healthy; nobody holds them."""
    entry = columns.get_entry(like)
    if entry is None:
        return
    registration = entry.devices.registration
    devices = tuple(replace(device, is_healthy=True) for device in registration.devices)
    columns.register(name, entry.devices._replace(registration=registration._replace(devices=devices)))


def _build_node(node: Mapping[str, Any], name: str) -> Json:
    metadata, spec = get_object(node, "metadata"), get_object(node, "spec")
    labels = {**get_object(metadata, "labels"), _HOST: name}
    taints = [taint for taint in spec.get("taints") or () if taint.get("key") != _CORDON]
    return {
        **node,
        "metadata": {**metadata, "name": name, "uid": name, "labels": labels},
        "spec": {**spec, "unschedulable": False, "taints": taints},
    }


def _extend(cluster: SimulationCluster, objects: Sequence[Json], names: Sequence[str]) -> SimulationCluster:
    described = {item["metadata"]["name"] for item in objects}
    others = tuple(name for name in names if name not in described)
    return replace(
        cluster,
        snapshot=change_snapshot(cluster.snapshot, objects),
        objects=DescribedObjects((*cluster.objects, *objects)),
        unfiltered=(*cluster.unfiltered, *others),
    )
