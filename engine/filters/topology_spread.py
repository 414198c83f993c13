"""PodTopologySpread: hard constraints on how evenly pods are spread over zones, nodes and the like."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.node_affinity import RequiredNodeAffinity, read_required_affinity
from engine.filters.tolerations import Toleration, find_untolerated, read_tolerations
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.fields import Object, read_int32, read_items, read_text, read_texts
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.nodes import Node
from engine.snapshot.pods import Pod
from engine.snapshot.selectors import Labels, LabelSelector, Requirement, read_label_selector

NAME: Final = "PodTopologySpread"
_MISSING_LABEL: Final = PluginRefusal(
    NAME,
    StatusCode.UNRESOLVABLE,
    ("node(s) didn't match pod topology spread constraints (missing required label)",),
)
_TOO_UNEVEN: Final = PluginRefusal(
    NAME, StatusCode.UNSCHEDULABLE, ("node(s) didn't match pod topology spread constraints",)
)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A constraint with whenUnsatisfiable DoNotSchedule."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector
    honors_affinity: bool
    honors_taints: bool
    selects_itself: bool
    """True if the selector selects the pod of the constraint."""


@dataclass(frozen=True, slots=True)
class SpreadRules:
    """The constraints of a pod and its conditions on the nodes that count."""

    namespace: str
    constraints: tuple[SpreadConstraint, ...]
    affinity: RequiredNodeAffinity
    tolerations: tuple[Toleration, ...]
    compares: bool

    def counts(self, constraint: SpreadConstraint, node: Node) -> bool:
        """Return whether the pods of a node count for a constraint."""
        labels = node.labels
        for other in self.constraints:
            if other.topology_key not in labels:
                return False
        if constraint.honors_affinity and not self.affinity.matches(node):
            return False
        return not constraint.honors_taints or not find_untolerated(
            node.taints, self.tolerations, compares=self.compares
        )


@dataclass(frozen=True, slots=True)
class SpreadCheck(NodeCheck):
    """Judges how uneven the pods of each constraint would be with one more on a node."""

    rules: SpreadRules
    domains: tuple[Mapping[str, int], ...]
    """Matching pods by value of the topology key, per constraint."""
    minima: tuple[int, ...]
    """Fewest matching pods of a domain, per constraint."""

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node without a topology key, and one in a domain that has too many pods already."""
        labels = node.node.labels
        for constraint, domains, minimum in zip(self.rules.constraints, self.domains, self.minima, strict=True):
            value = labels.get(constraint.topology_key)
            if value is None:
                return _MISSING_LABEL
            if domains.get(value, 0) + constraint.selects_itself - minimum > constraint.max_skew:
                return _TOO_UNEVEN
        return None

    def with_pods(self, pods: Sequence[Pod], node: NodeInfo) -> "SpreadCheck":
        """Count more pods on a node."""
        return self._count(pods, node.node, 1)

    def without_pods(self, pods: Sequence[Pod], node: NodeInfo) -> "SpreadCheck":
        """Count fewer pods on a node."""
        return self._count(pods, node.node, -1)

    def _count(self, pods: Sequence[Pod], node: Node, sign: int) -> "SpreadCheck":
        """Count pods as kube-scheduler counts a change, which unlike its first count includes pods being deleted."""
        domains = [dict(counts) for counts in self.domains]
        for constraint, counts in zip(self.rules.constraints, domains, strict=True):
            number = sum(
                1 for pod in pods if pod.namespace == self.rules.namespace and constraint.selector.matches(pod.labels)
            )
            if number and self.rules.counts(constraint, node):
                value = node.labels[constraint.topology_key]
                counts[value] = counts.get(value, 0) + sign * number
        return replace(self, domains=tuple(domains), minima=_compute_minima(self.rules, domains))


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Count the matching pods of every domain."""
    constraints = tuple(_iterate_constraints(cycle.spec, cycle.pod.labels))
    if not constraints:
        return SKIPPED
    if unread := cycle.snapshot.find_missing_kinds(kinds.POD):
        return Unjudged(NAME, unread)
    rules = SpreadRules(
        cycle.pod.namespace,
        constraints,
        read_required_affinity(cycle.spec),
        read_tolerations(cycle.spec),
        cycle.release.has("TaintTolerationComparisonOperators"),
    )
    domains = [_count_domains(rules, constraint, cycle.snapshot.nodes) for constraint in constraints]
    return SpreadCheck(rules, tuple(domains), _compute_minima(rules, domains))


def _count_domains(rules: SpreadRules, constraint: SpreadConstraint, nodes: Mapping[str, NodeInfo]) -> dict[str, int]:
    domains: dict[str, int] = {}
    selector, namespace = constraint.selector, rules.namespace
    # An empty selector selects every pod elsewhere, and none in this count.
    counts_pods = not selector.is_empty
    for info in nodes.values():
        node = info.node
        if not rules.counts(constraint, node):
            continue
        number = 0
        if counts_pods:
            for pod in info.pods:
                if pod.namespace == namespace and selector.matches(pod.labels) and not pod.is_deleted:
                    number += 1
        value = node.labels[constraint.topology_key]
        domains[value] = domains.get(value, 0) + number
    return domains


def _compute_minima(rules: SpreadRules, domains: Sequence[Mapping[str, int]]) -> tuple[int, ...]:
    """Take the fewest pods of a domain; with fewer domains than a constraint wants, none."""
    return tuple(
        min(counts.values()) if len(counts) >= constraint.min_domains and counts else 0
        for constraint, counts in zip(rules.constraints, domains, strict=True)
    )


def _iterate_constraints(spec: Object, labels: Labels) -> Iterator[SpreadConstraint]:
    for location, constraint in read_items(spec, "topologySpreadConstraints", "spec"):
        if read_text(constraint, "whenUnsatisfiable", location) == "DoNotSchedule":
            selector = _read_selector(constraint, location, labels)
            yield SpreadConstraint(
                topology_key=read_text(constraint, "topologyKey", location),
                max_skew=read_int32(constraint, "maxSkew", location),
                min_domains=read_int32(constraint, "minDomains", location, default=1),
                selector=selector,
                honors_affinity=(read_text(constraint, "nodeAffinityPolicy", location) or "Honor") == "Honor",
                honors_taints=read_text(constraint, "nodeTaintsPolicy", location) == "Honor",
                selects_itself=selector.matches(labels),
            )


def _read_selector(constraint: Object, path: str, labels: Labels) -> LabelSelector:
    """Read the selector with the pod's own values of ``matchLabelKeys`` added."""
    selector = read_label_selector(constraint, "labelSelector", path)
    keys = read_texts(constraint, "matchLabelKeys", path)
    if selector.requirements is None:
        return selector
    merged = tuple(Requirement(key, "In", (labels[key],)) for key in keys if key in labels)
    return LabelSelector((*merged, *selector.requirements))
