"""Obstacles behind the verdicts of kube-scheduler's filters: per reason the nodes out of all, and the numbers.

A judgement (`engine.judging`) says which filter refused a node. The modules ``judged_*`` work out from the same
snapshot what the filter compared: the taint, the label, the amount with its holders, the volume, the device.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from engine.claims.inventory import Inventory
from engine.diagnosis.judged_claims import describe_claims
from engine.diagnosis.judged_cluster import JudgedCluster, Refusals, build_judged_cluster
from engine.diagnosis.judged_labels import describe_affinity, describe_cordon, describe_name, describe_taints
from engine.diagnosis.judged_neighbours import describe_pod_affinity, describe_ports, describe_spread
from engine.diagnosis.judged_pod import describe_pod_refusal
from engine.diagnosis.judged_resources import describe_resources
from engine.diagnosis.judged_volumes import describe_volumes
from engine.diagnosis.outcome import FoundObstacle
from engine.filters import (
    dynamic_resources,
    node_affinity,
    node_name,
    node_ports,
    node_resources,
    node_unschedulable,
    pod_affinity,
    taint_toleration,
    topology_spread,
    volume_binding,
    volume_limits,
    volume_restrictions,
    volume_zone,
)
from engine.filters.judgement import Judgement
from engine.filters.release import LATEST, SchedulerRelease
from engine.snapshot.snapshot import Snapshot

Describe = Callable[[JudgedCluster, Refusals], Iterator[FoundObstacle]]

_DESCRIBERS: Final[Mapping[str, Describe]] = {
    node_unschedulable.NAME: describe_cordon,
    node_name.NAME: describe_name,
    taint_toleration.NAME: describe_taints,
    node_affinity.NAME: describe_affinity,
    node_ports.NAME: describe_ports,
    node_resources.NAME: describe_resources,
    volume_restrictions.NAME: describe_volumes,
    volume_limits.NAME: describe_volumes,
    volume_binding.NAME: describe_volumes,
    volume_zone.NAME: describe_volumes,
    topology_spread.NAME: describe_spread,
    pod_affinity.NAME: describe_pod_affinity,
    dynamic_resources.NAME: describe_claims,
}
_CLOSING: Final = (node_unschedulable.NAME, node_name.NAME, taint_toleration.NAME, node_affinity.NAME)
"""Filters that close a node to the pod on purpose."""


def derive_judged_obstacles(
    snapshot: Snapshot,
    judgement: Judgement,
    *,
    release: SchedulerRelease = LATEST,
    inventory: Inventory | None = None,
) -> list[FoundObstacle]:
    """Derive what keeps the pod from nodes, in the order of kube-scheduler's filters; also where other nodes fit.

    judgement: with what each filter says by itself (``alone=True``), every reason of a node counts; otherwise the first
    one. release: that of the judgement. inventory: devices of the same snapshot, if the caller has them.
    """
    cluster = build_judged_cluster(snapshot, judgement, release, inventory)
    if cluster is None:
        return []
    pod_refusals = (*judgement.pre_enqueue, *((judgement.prefilter,) if judgement.prefilter else ()))
    obstacles = [obstacle for refusal in pod_refusals for obstacle in describe_pod_refusal(cluster, refusal)]
    refusals = cluster.group_refusals()
    meant = cluster.list_open_nodes(_CLOSING)
    for plugin, of_plugin in refusals.items():
        describe = _DESCRIBERS.get(plugin, _describe_words)
        obstacles += [_mark_aside(obstacle, plugin, meant) for obstacle in describe(cluster, of_plugin)]
    return obstacles


def _mark_aside(obstacle: FoundObstacle, plugin: str, meant: frozenset[str]) -> FoundObstacle:
    """Mark a cordon, taint or selector where another obstacle keeps the pod from the nodes that it was meant for."""
    return obstacle._replace(is_aside=True) if plugin in _CLOSING and meant else obstacle


def _describe_words(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe a filter without a text of its own by kube-scheduler's words."""
    by_words: dict[str, list[str]] = {}
    for node, refusal in refusals.items():
        by_words.setdefault(", ".join(refusal.reasons), []).append(node)
    for words, nodes in by_words.items():
        yield cluster.build_obstacle("RefusedByFilter", nodes, {"words": words}, reasons=refusals)
