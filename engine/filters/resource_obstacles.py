"""Obstacles behind "Insufficient NAME": why no node has enough of one resource for a pod.

Five obstacles, of which waiting helps with only one: the resource is offered by no node, never enough on one node,
unhealthy, in use, or only on nodes that a taint, a selector or a cordon keeps the pod from.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.filters import node_affinity, node_name, node_unschedulable, taint_toleration
from engine.filters.cycle import NodeCheck, SchedulingCycle
from engine.filters.node_resources import map_class_resources
from engine.filters.verdicts import PluginRefusal, Unjudged
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.quantity import PODS

MAX_NAMES: Final = 3
MAX_NODES: Final = 3
_MIN_LIKENESS: Final = 0.6


@dataclass(frozen=True, slots=True)
class OfferedResource:
    """A resource that nodes offer under another name."""

    resource: str
    nodes: int
    amount: int
    """Allocatable amount of all nodes."""


@dataclass(frozen=True, slots=True)
class ResourceNotOffered:
    """No node has any of the resource: no device plugin, a profile that is not cut, or another name."""

    resource: str
    nearest: tuple[OfferedResource, ...]
    """Names that nodes do offer, the most similar first."""
    announcing: tuple[str, ...]
    """Nodes that name the resource with an amount of zero: a device plugin runs there and finds no device."""
    device_class: str | None
    """DeviceClass that provides the resource by claims."""


@dataclass(frozen=True, slots=True)
class ResourceNeverEnough:
    """Nodes offer the resource, and even the largest has less than the pod requests."""

    resource: str
    requested: int
    largest: int
    node: str
    total: int
    """Amount of all nodes; enough of it does not help a pod, which runs on one node."""


@dataclass(frozen=True, slots=True)
class UnhealthyNode:
    """A node on which a device plugin reports fewer healthy devices than there are."""

    node: str
    capacity: int
    allocatable: int
    used: int


@dataclass(frozen=True, slots=True)
class ResourceUnhealthy:
    """Nodes would have enough if all of their devices were healthy."""

    resource: str
    requested: int
    nodes: tuple[UnhealthyNode, ...]


@dataclass(frozen=True, slots=True)
class ResourceHolder:
    """A pod that holds some of a resource."""

    namespace: str
    pod: str
    node: str
    amount: int
    since: str
    """Start of the pod as the API server wrote it, "" if it has not started."""
    priority: int
    is_leaving: bool
    """True while the pod is being deleted."""


@dataclass(frozen=True, slots=True)
class SufficientEnds:
    """Pods of one node whose end would free enough."""

    node: str
    holders: tuple[ResourceHolder, ...]


@dataclass(frozen=True, slots=True)
class ResourceInUse:
    """Nodes have enough of the resource, and other pods hold it."""

    resource: str
    requested: int
    free: int
    """Largest free amount of one of the nodes."""
    nodes: tuple[str, ...]
    holders: tuple[ResourceHolder, ...]
    """On all of the nodes, the longest running first."""
    sufficient: tuple[SufficientEnds, ...]
    """On up to three nodes, the fewest pods first."""


@dataclass(frozen=True, slots=True)
class ClosedNode:
    """A node that the pod may not use, with everything that keeps it out."""

    node: str
    free: int
    refusals: tuple[PluginRefusal, ...]


@dataclass(frozen=True, slots=True)
class ResourceBehindConstraint:
    """Nodes have enough of the resource free, and cordons, taints or selectors keep the pod from all of them."""

    resource: str
    requested: int
    nodes: tuple[ClosedNode, ...]


ResourceObstacle = (
    ResourceNotOffered | ResourceNeverEnough | ResourceUnhealthy | ResourceInUse | ResourceBehindConstraint | Unjudged
)
"""Unjudged: pods or nodes could not be read, so that it is unknown what is in use."""


@dataclass(frozen=True, slots=True)
class _Supply:
    """Amounts of one resource on one node, for one pod."""

    info: NodeInfo
    capacity: int
    allocatable: int
    used: int
    refusals: tuple[PluginRefusal, ...]

    @property
    def free(self) -> int:
        return self.allocatable - self.used


def find_resource_obstacles(cycle: SchedulingCycle, resource: str) -> tuple[ResourceObstacle, ...]:
    """Find what keeps a pod from the amount that it requests, the obstacle of the nodes that it may use first.

    Empty if a node that the pod may use has enough. Other filters than cordon, name, taints and node affinity are not
    looked at.
    """
    requested = 1 if resource == PODS else cycle.request.get(resource, 0)
    if unread := cycle.snapshot.find_missing_kinds(kinds.NODE):
        return (Unjudged("", unread),)
    supplies = list(_iterate_supplies(cycle, resource))
    if not any(supply.capacity > 0 for supply in supplies):
        return (_describe_missing(cycle, resource),)
    usable = [supply for supply in supplies if _measure_capacity(resource, supply) >= requested]
    if not usable:
        return (_describe_largest(resource, requested, supplies),)
    eligible = [supply for supply in usable if not supply.refusals]
    if unread := cycle.snapshot.find_missing_kinds(kinds.POD):
        return (Unjudged("NodeResourcesFit", unread),)
    if any(supply.free >= requested for supply in eligible):
        return ()
    closed = [supply for supply in usable if supply.refusals and (supply.free >= requested or not eligible)]
    return (
        *_describe_unhealthy(resource, requested, eligible),
        *_describe_use(resource, requested, eligible),
        *_describe_closed(resource, requested, closed),
    )


def _iterate_supplies(cycle: SchedulingCycle, resource: str) -> Iterator[_Supply]:
    checks = _prepare_checks(cycle)
    for info in cycle.snapshot.nodes.values():
        verdicts = [check.judge(info) for check in checks]
        refusals = tuple(verdict for verdict in verdicts if isinstance(verdict, PluginRefusal))
        capacity, allocatable = (amounts.get(resource, 0) for amounts in (info.node.capacity, info.node.allocatable))
        used = len(info.pods) if resource == PODS else info.requested.get(resource, 0)
        # A node that reports no capacity, as in a file written by hand, has what it can allocate.
        yield _Supply(info, max(capacity, allocatable), allocatable, used, refusals)


def _prepare_checks(cycle: SchedulingCycle) -> list[NodeCheck]:
    prepared = (plugin.prepare(cycle) for plugin in (node_unschedulable, node_name, taint_toleration, node_affinity))
    return [check for check in prepared if isinstance(check, NodeCheck)]


def _measure_capacity(resource: str, supply: _Supply) -> int:
    """Return what a node has once its devices are healthy; of CPU and memory, the node itself keeps a part."""
    return supply.capacity if _is_device(resource) else supply.allocatable


def _is_device(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource


def _describe_missing(cycle: SchedulingCycle, resource: str) -> ResourceNotOffered:
    announcing = tuple(name for name, info in cycle.snapshot.nodes.items() if resource in info.node.capacity)
    device_class = map_class_resources(cycle.snapshot).get(resource)
    return ResourceNotOffered(resource, _find_nearest(cycle, resource), announcing, device_class)


def _find_nearest(cycle: SchedulingCycle, resource: str) -> tuple[OfferedResource, ...]:
    """Find names of offered resources that are like a name; those of the same vendor come first."""
    offered: dict[str, OfferedResource] = {}
    for info in cycle.snapshot.nodes.values():
        for name, amount in info.node.allocatable.items():
            if amount > 0 and _is_device(name):
                former = offered.get(name, OfferedResource(name, 0, 0))
                offered[name] = OfferedResource(name, former.nodes + 1, former.amount + amount)
    likeness = {name: _measure_likeness(resource, name) for name in offered}
    similar = sorted((name for name in offered if likeness[name] >= _MIN_LIKENESS), key=lambda name: -likeness[name])
    return tuple(offered[name] for name in similar[:MAX_NAMES])


def _measure_likeness(name: str, other: str) -> float:
    """Measure how alike two names are, 0 to 1; a vendor or a device in common counts as much as likeness of letters."""
    vendor, _, device = name.rpartition("/")
    other_vendor, _, other_device = other.rpartition("/")
    letters = difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    shared = 0.6 if vendor == other_vendor or device == other_device else 0.0
    return max(letters, shared + 0.4 * letters)


def _describe_largest(resource: str, requested: int, supplies: list[_Supply]) -> ResourceNeverEnough:
    largest = max(supplies, key=lambda supply: _measure_capacity(resource, supply))
    total = sum(_measure_capacity(resource, supply) for supply in supplies)
    return ResourceNeverEnough(resource, requested, _measure_capacity(resource, largest), largest.info.name, total)


def _describe_unhealthy(resource: str, requested: int, eligible: list[_Supply]) -> Iterator[ResourceUnhealthy]:
    if not _is_device(resource):
        return
    nodes = tuple(
        UnhealthyNode(supply.info.name, supply.capacity, supply.allocatable, supply.used)
        for supply in eligible
        if supply.capacity > supply.allocatable and supply.capacity - supply.used >= requested
    )
    if nodes:
        yield ResourceUnhealthy(resource, requested, nodes)


def _describe_use(resource: str, requested: int, eligible: list[_Supply]) -> Iterator[ResourceInUse]:
    held = [supply for supply in eligible if supply.allocatable >= requested]
    if not held:
        return
    holders = [holder for supply in held for holder in _iterate_holders(resource, supply.info)]
    ends = [_choose_ends(resource, requested, supply) for supply in held]
    yield ResourceInUse(
        resource,
        requested,
        max(supply.free for supply in held),
        tuple(supply.info.name for supply in held),
        tuple(sorted(holders, key=lambda holder: (holder.since or "9", holder.namespace, holder.pod))),
        tuple(sorted(ends, key=lambda end: len(end.holders))[:MAX_NODES]),
    )


def _choose_ends(resource: str, requested: int, supply: _Supply) -> SufficientEnds:
    """Choose few pods whose end frees enough on a node: those that leave anyway, then the largest amounts."""
    missing = requested - supply.free
    chosen: list[ResourceHolder] = []
    order = sorted(
        _iterate_holders(resource, supply.info),
        key=lambda holder: (not holder.is_leaving, -holder.amount, holder.priority),
    )
    for holder in order:
        if missing > 0:
            chosen.append(holder)
            missing -= holder.amount
    for holder in sorted(chosen, key=lambda holder: holder.amount):
        if missing + holder.amount <= 0:
            chosen.remove(holder)
            missing += holder.amount
    return SufficientEnds(supply.info.name, tuple(chosen))


def _iterate_holders(resource: str, info: NodeInfo) -> Iterator[ResourceHolder]:
    for pod in info.pods:
        amount = 1 if resource == PODS else pod.request.get(resource, 0)
        if amount > 0:
            yield ResourceHolder(
                pod.namespace, pod.name, info.name, amount, pod.started_at, pod.priority, pod.is_deleted
            )


def _describe_closed(resource: str, requested: int, closed: list[_Supply]) -> Iterator[ResourceBehindConstraint]:
    if closed:
        nodes = tuple(ClosedNode(supply.info.name, supply.free, supply.refusals) for supply in closed)
        yield ResourceBehindConstraint(resource, requested, nodes)
