"""CopiesByNode for a pod: the number of its copies that each node takes, by kube-scheduler's filters and HAMi's fit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.fit.judge.copies import CopyCounter
from engine.simulation.cluster import SimulationCluster
from engine.simulation.counted import judge_for_counting
from engine.simulation.kai_shares import asks_kai_share, count_share_copies
from engine.simulation.pod_placer import placing_pods
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodOutcome, PodVerdict, judge_simulated
from engine.simulation.workloads import PodTemplate
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.quantity import PODS
from runtime.kubernetes.object_fields import get_object, iterate_objects

MAX_COPIES: Final = 100_000
"""Limit of the copies on one node."""
MAX_VERDICTS: Final = 20_000
"""Limit of the verdicts on nodes where copies have to be placed one after the other."""
_RULES: Final = ("podAffinity", "podAntiAffinity")


@dataclass(frozen=True, slots=True)
class CopiesByNode:
    """Copies of a pod that start now."""

    verdict: PodVerdict
    """Verdict on the first copy."""
    copies: Mapping[str, int]
    """Number by node, without nodes that take none."""
    is_counted: bool = True
    """False if counting ended at a limit."""

    @property
    def total(self) -> int:
        """Number on all nodes together."""
        return sum(self.copies.values())


def measure_capacity(cluster: SimulationCluster, template: PodTemplate, setting: SimulationSetting) -> CopiesByNode:
    """Measure the room for copies of a pod; nothing of the cluster changes. Raises `PodRejectedError`."""
    pod = template.build_pod(0, MAX_COPIES)
    if (counted := judge_for_counting(cluster, pod, setting)) and not has_rules(counted):
        taken = count_by_node(cluster, counted, CopyCounter(cluster.columns, setting.policy))
        if taken:
            return CopiesByNode(counted, taken)
        if taken is not None:
            return CopiesByNode(replace(counted, outcome=PodOutcome.REFUSED, fitting=()), {})
    verdict = judge_simulated(cluster, pod, setting.identity, setting.policy, setting.now)
    if verdict.outcome is not PodOutcome.FITS:
        return CopiesByNode(verdict, {})
    copies = count_by_node(cluster, verdict, CopyCounter(cluster.columns, setting.policy))
    return _count_in_turn(cluster, template, verdict, setting) if copies is None else CopiesByNode(verdict, copies)


def count_by_node(cluster: SimulationCluster, verdict: PodVerdict, counter: CopyCounter) -> Mapping[str, int] | None:
    """Count the copies on each node that the filters let pass; None where a copy decides about other nodes.

    verdict: of the pod, as one that fits. counter: of the cluster's columns.
    """
    if has_rules(verdict):
        return None
    names = verdict.decision.node_names if verdict.decision else verdict.fitting
    limits = _count_limits(cluster, verdict, names)
    if not all(limits.values()):
        # A node that passes without the amount offers it in another way, such as by a DeviceClass.
        return None
    if not verdict.asks_devices:
        return limits
    counts = counter.count_copies(verdict.pod, names, max(limits.values(), default=0))
    if counts is None:
        return None
    taken = {name: min(limits[name], count) for name, count in zip(names, counts.tolist(), strict=True)}
    return {name: count for name, count in taken.items() if count}


def _count_limits(cluster: SimulationCluster, verdict: PodVerdict, names: Sequence[str]) -> dict[str, int]:
    """Count the copies for which each node has amounts, once for equal nodes."""
    nodes, kinds = cluster.snapshot.nodes, cluster.node_kinds.read(cluster.snapshot)
    if kinds is None or asks_kai_share(verdict.pod):
        return {name: count_by_resources(verdict, nodes.get(name)) for name in names}
    counts = {first: count_by_resources(verdict, nodes[first]) for first in kinds.snapshot.nodes}
    return {name: counts[kinds.first[name]] if name in kinds.first else MAX_COPIES for name in names}


def has_rules(verdict: PodVerdict) -> bool:
    """Tell whether a copy of the pod decides about nodes by more than the amounts that it takes of its own node."""
    spec = get_object(verdict.pod, "spec")
    affinity = get_object(spec, "affinity")
    ports = (port for container in iterate_objects(spec, "containers") for port in iterate_objects(container, "ports"))
    volumes = iterate_objects(spec, "volumes")
    return bool(
        any(get_object(affinity, rule) for rule in _RULES)
        or spec.get("topologySpreadConstraints")
        or spec.get("resourceClaims")
        or any(volume.get("persistentVolumeClaim") or volume.get("ephemeral") for volume in volumes)
        or any(port.get("hostPort") for port in ports)
    )


def count_by_resources(verdict: PodVerdict, info: NodeInfo | None) -> int:
    """Count the copies for which a node has CPU, memory, pods, other resources that kube-scheduler counts, and shares.

    info: None for a node that was not read.
    """
    judgement = verdict.judgement
    if info is None or judgement is None:
        return MAX_COPIES
    allocatable, requested = info.node.allocatable, info.requested
    counts = [MAX_COPIES, allocatable.get(PODS, 0) - len(info.pods)]
    counts += [
        (allocatable.get(name, 0) - requested.get(name, 0)) // amount
        for name, amount in judgement.request.items()
        if amount > 0
    ]
    limit = max(0, min(counts))
    return count_share_copies(info, verdict.pod, limit) if asks_kai_share(verdict.pod) else limit


def _count_in_turn(
    cluster: SimulationCluster, template: PodTemplate, verdict: PodVerdict, setting: SimulationSetting
) -> CopiesByNode:
    """Place copies one after the other, until one waits or the limit of verdicts is reached."""
    limit = max(1, MAX_VERDICTS // max(1, cluster.node_count))
    copies: Counter[str] = Counter()
    with placing_pods(cluster) as placer:
        for number in range(limit):
            pod = template.build_pod(number, MAX_COPIES)
            placed = judge_simulated(placer.cluster, pod, setting.identity, setting.policy, setting.now)
            if placed.outcome is not PodOutcome.FITS:
                return CopiesByNode(verdict, copies)
            placer.bind(placed)
            copies[placed.node or placed.fitting[0]] += 1
    return CopiesByNode(verdict, copies, is_counted=False)
