"""Obstacles of NodeResourcesFit: which amount is missing where, who holds it, and whether waiting can help.

The five obstacles are those of `engine.filters.resource_obstacles`; here they get their numbers as people write them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.judged_labels import format_taint, list_failed_conditions, list_untolerated
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import CORDON_TAINT, write_phrase
from engine.diagnosis.wording import join_phrases, shorten_list
from engine.filters import node_affinity, node_unschedulable, taint_toleration
from engine.filters.node_affinity import read_required_affinity
from engine.filters.node_resources import TOO_MANY_PODS
from engine.filters.resource_obstacles import (
    ClosedNode,
    ResourceBehindConstraint,
    ResourceHolder,
    ResourceInUse,
    ResourceNeverEnough,
    ResourceNotOffered,
    ResourceUnhealthy,
    find_resource_obstacles,
)
from engine.filters.tolerations import read_tolerations
from engine.hami.vendor_catalog import is_counted_by_extender
from engine.snapshot.quantity import PODS, format_amount
from schemas.answers.diagnosis import InBothLanguages

_INSUFFICIENT: Final = "Insufficient "
MAX_HOLDERS: Final = 3
_GPU_WORDS: Final = ("gpu", "nvidia", "accelerator")


def describe_resources(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe every resource of which a node has too little."""
    lacking: dict[str, list[str]] = {}
    for node, refusal in refusals.items():
        for reason in refusal.reasons:
            resource = PODS if reason == TOO_MANY_PODS else reason.removeprefix(_INSUFFICIENT)
            lacking.setdefault(resource, []).append(node)
    # Of a pod of HAMi's scheduler the filters do not count them.
    shares = {resource: lacking.pop(resource) for resource in list(lacking) if is_counted_by_extender(resource)}
    if shares:
        yield _describe_shares(cluster, shares, refusals)
    for resource, nodes in lacking.items():
        described = list(_describe_resource(cluster, resource, nodes, refusals))
        yield from described or _describe_by_offer(cluster, resource, nodes, refusals)


def _describe_shares(cluster: JudgedCluster, shares: Mapping[str, list[str]], refusals: Refusals) -> FoundObstacle:
    """Describe shares of devices that a scheduler without HAMi's extender looks for on nodes."""
    words: dict[str, Word] = {
        "resource": shorten_list(sorted(shares)),
        "scheduler": cluster.cycle.pod.scheduler,
    }
    nodes = dict.fromkeys(node for of_share in shares.values() for node in of_share)
    return cluster.build_obstacle("ShareOfOtherScheduler", nodes, words, reasons=refusals)


def _describe_resource(
    cluster: JudgedCluster, resource: str, nodes: Sequence[str], refusals: Refusals
) -> Iterator[FoundObstacle]:
    """Describe what is behind the amount that is missing, for nodes that the pod may use."""
    for obstacle in find_resource_obstacles(cluster.cycle, resource):
        describe = _DESCRIBERS.get(type(obstacle))
        # A closed node that is full as well does not have the resource: its amounts are described instead.
        if isinstance(obstacle, ResourceBehindConstraint) and _is_full(obstacle):
            continue
        if describe:
            yield describe(cluster, obstacle, nodes, refusals)


def _is_full(obstacle: ResourceBehindConstraint) -> bool:
    return all(node.free < obstacle.requested for node in obstacle.nodes)


def _describe_by_offer(
    cluster: JudgedCluster, resource: str, nodes: Sequence[str], refusals: Refusals
) -> Iterator[FoundObstacle]:
    """Describe nodes with too little apart from those that never offer the resource, where no pod that ends helps."""
    offers = [name for name in nodes if cluster.get_node(name).node.allocatable.get(resource, 0) or resource == PODS]
    if offers:
        yield _describe_amounts(cluster, resource, offers, refusals)
    if without := [name for name in nodes if name not in set(offers)]:
        words: dict[str, Word] = {"resource": resource}
        yield cluster.build_obstacle("NodeWithoutResource", without, words, reasons=refusals)


def _describe_amounts(cluster: JudgedCluster, resource: str, nodes: Sequence[str], refusals: Refusals) -> FoundObstacle:
    """Describe nodes with too little while another node that the pod may use has enough."""
    free = {name: _measure_free(cluster, resource, name) for name in nodes}
    best = max(free, key=lambda name: (free[name], name))
    words: dict[str, Word] = {
        "resource": resource,
        "asked": format_amount(resource, _get_request(cluster, resource)),
        "free": format_amount(resource, max(free[best], 0)),
        "node": best,
    }
    code = "TooManyPods" if resource == PODS else "InsufficientResource"
    clauses = ["amounts"] if resource != PODS else []
    details = {name: f"{format_amount(resource, max(amount, 0))} free" for name, amount in free.items()}
    # The amounts name the node that has the most free.
    return cluster.build_obstacle(
        code, nodes, words, clauses=clauses, reasons=refusals, details=details, names_one=bool(clauses)
    )


def _get_request(cluster: JudgedCluster, resource: str) -> int:
    return 1 if resource == PODS else cluster.cycle.request.get(resource, 0)


def _measure_free(cluster: JudgedCluster, resource: str, name: str) -> int:
    info = cluster.get_node(name)
    used = len(info.pods) if resource == PODS else info.requested.get(resource, 0)
    return info.node.allocatable.get(resource, 0) - used


def _describe_missing(
    cluster: JudgedCluster, obstacle: ResourceNotOffered, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    resource = obstacle.resource
    nearest = [
        write_phrase(
            "offered_on",
            subject=offered.resource,
            amount=format_amount(offered.resource, offered.amount),
            n=offered.nodes,
        )
        for offered in obstacle.nearest
    ]
    announcing, labelled = list(obstacle.announcing), _list_labelled(cluster, resource)
    words: dict[str, Word] = {
        "resource": resource,
        "asked": format_amount(resource, _get_request(cluster, resource)),
        "nearest": join_phrases(nearest),
        "announcing": shorten_list(announcing),
        "labelled": shorten_list(labelled),
        "device_class": obstacle.device_class or "",
    }
    clauses = ["nearest"] if nearest else []
    clauses += ["announcing"] if announcing else ["labelled"] if labelled else []
    clauses += ["device_class"] if obstacle.device_class else []
    numbers = {"asked": _get_request(cluster, resource)}
    built = cluster.build_obstacle("ResourceNotOffered", nodes, words, numbers=numbers, reasons=refusals)
    # No node offers it, whichever of them were refused for it first.
    return built._replace(clauses=clauses)


def _list_labelled(cluster: JudgedCluster, resource: str) -> list[str]:
    """List nodes whose labels say that they have such a device, although their plugin offers none."""
    vendor = resource.partition("/")[0].partition(".")[0].lower()
    words = (*_GPU_WORDS, vendor) if vendor in ("nvidia", "") else (vendor,)
    return sorted(
        name
        for name, info in cluster.snapshot.nodes.items()
        if "/" in resource and any(word in key.lower() for key in info.node.labels for word in words)
    )


def _describe_largest(
    cluster: JudgedCluster, obstacle: ResourceNeverEnough, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    resource = obstacle.resource
    words: dict[str, Word] = {
        "resource": resource,
        "asked": format_amount(resource, obstacle.requested),
        "largest": format_amount(resource, obstacle.largest),
        "node": obstacle.node,
        "total": format_amount(resource, obstacle.total),
    }
    numbers = {"asked": obstacle.requested, "largest": obstacle.largest, "total": obstacle.total}
    built = cluster.build_obstacle("ResourceNeverEnough", nodes, words, numbers=numbers, reasons=refusals)
    return built._replace(clauses=["total"] if cluster.judgement.total > 1 else [])


def _describe_unhealthy(
    cluster: JudgedCluster, obstacle: ResourceUnhealthy, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    del nodes
    first = obstacle.nodes[0]
    words: dict[str, Word] = {
        "resource": obstacle.resource,
        "asked": format_amount(obstacle.resource, obstacle.requested),
        "node": first.node,
        "capacity": first.capacity,
        "allocatable": first.allocatable,
        "used": first.used,
        "unhealthy": first.capacity - first.allocatable,
    }
    numbers = {"asked": obstacle.requested, "capacity": first.capacity, "allocatable": first.allocatable}
    names = [node.node for node in obstacle.nodes]
    return cluster.build_obstacle("ResourceUnhealthy", names, words, numbers=numbers, reasons=refusals, names_one=True)


def _describe_use(
    cluster: JudgedCluster, obstacle: ResourceInUse, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    del nodes
    resource = obstacle.resource
    ends = obstacle.sufficient[0] if obstacle.sufficient else None
    holders = list(ends.holders) if ends else []
    words: dict[str, Word] = {
        "resource": resource,
        "asked": format_amount(resource, obstacle.requested),
        "free": format_amount(resource, max(obstacle.free, 0)),
        "holders": join_phrases([_describe_holder(resource, holder) for holder in obstacle.holders[:MAX_HOLDERS]]),
        "ending": shorten_list([f"{holder.namespace}/{holder.pod}" for holder in holders]),
        "node": ends.node if ends else "",
    }
    clauses = ["holders"] if obstacle.holders and resource != PODS else []
    clauses += ["ending"] if holders and resource != PODS else []
    numbers = {"asked": obstacle.requested, "free": max(obstacle.free, 0)}
    code = "TooManyPods" if resource == PODS else "ResourceInUse"
    built = cluster.build_obstacle(code, obstacle.nodes, words, numbers=numbers, reasons=refusals)
    return built._replace(clauses=clauses)


def _describe_holder(resource: str, holder: ResourceHolder) -> InBothLanguages:
    return write_phrase(
        "leaving_holder" if holder.is_leaving else "holder",
        subject=f"{holder.namespace}/{holder.pod}",
        amount=format_amount(resource, holder.amount),
        node=holder.node,
    )


def _describe_closed(
    cluster: JudgedCluster, obstacle: ResourceBehindConstraint, nodes: Sequence[str], refusals: Refusals
) -> FoundObstacle:
    del nodes
    resource = obstacle.resource
    closed = [_describe_closed_node(cluster, resource, node) for node in obstacle.nodes]
    words: dict[str, Word] = {
        "resource": resource,
        "asked": format_amount(resource, obstacle.requested),
        "closed": join_phrases(closed),
    }
    names = [node.node for node in obstacle.nodes]
    numbers = {"asked": obstacle.requested}
    built = cluster.build_obstacle("ResourceBehindConstraint", names, words, numbers=numbers, reasons=refusals)
    return built._replace(clauses=[])


def _describe_closed_node(cluster: JudgedCluster, resource: str, closed: ClosedNode) -> InBothLanguages:
    node, spec = cluster.get_node(closed.node).node, cluster.cycle.spec
    plugins = {refusal.plugin for refusal in closed.refusals}
    parts = [write_phrase("cordoned")] if node_unschedulable.NAME in plugins else []
    if taint_toleration.NAME in plugins:
        taints = [taint for taint in list_untolerated(node, read_tolerations(spec)) if taint.key != CORDON_TAINT]
        parts += [write_phrase("has_taint", taint=format_taint(taint)) for taint in taints]
    if node_affinity.NAME in plugins:
        failed = list_failed_conditions(read_required_affinity(spec), node)
        parts += [write_phrase("does_not_match", condition=condition) for condition in failed]
    free = format_amount(resource, max(closed.free, 0))
    return write_phrase("closed_node", node=closed.node, free=free, parts=join_phrases(parts))


_DESCRIBERS: Final[Mapping[type, Callable[[JudgedCluster, Any, Sequence[str], Refusals], FoundObstacle]]] = {
    ResourceNotOffered: _describe_missing,
    ResourceNeverEnough: _describe_largest,
    ResourceUnhealthy: _describe_unhealthy,
    ResourceInUse: _describe_use,
    ResourceBehindConstraint: _describe_closed,
}
