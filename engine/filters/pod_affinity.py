"""InterPodAffinity: pods that this pod has to be near or away from, and pods that stay away from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.affinity_terms import AffinityTerm, read_required_terms
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.selectors import Labels, LabelSelector
from engine.snapshot.snapshot import Snapshot

NAME: Final = "InterPodAffinity"
_AFFINITY: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
_ANTI_AFFINITY: Final = PluginRefusal(NAME, StatusCode.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
_EXISTING: Final = PluginRefusal(
    NAME, StatusCode.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",)
)

TopologyDomain = tuple[str, str]
"""A node label with its value: the nodes that have it are one domain."""
Counts = Mapping[TopologyDomain, int]
_NO_LABELS: Final[Labels] = {}


@dataclass(frozen=True, slots=True)
class AffinityRules:
    """The terms of a pod, with the namespaces that they select resolved to names."""

    pod: Pod
    namespace_labels: Labels
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    selecting: dict[str, tuple[bool, tuple[AffinityTerm, ...]]] = field(default_factory=dict)
    """By namespace, as namespaces occur: whether all affinity terms look there, and the anti-affinity terms that do."""

    def matches(self, pod: Pod) -> bool:
        """Return whether all affinity terms select a pod; without terms none is selected."""
        looks, _ = self.find_selecting(pod.namespace)
        return looks and self.selects_labels(pod.labels)

    def selects_labels(self, labels: Labels) -> bool:
        """Return whether the selectors of all affinity terms select a pod with these labels."""
        # A loop, because a judgement comes here once per pod of the terms' namespaces.
        for term in self.affinity:  # noqa: SIM110
            if not term.selector.matches(labels):
                return False
        return True

    def find_selecting(self, namespace: str) -> tuple[bool, tuple[AffinityTerm, ...]]:
        """Return what looks into a namespace, which most pods of a cluster are outside of."""
        if namespace not in self.selecting:
            looks = bool(self.affinity) and all(term.includes(namespace, _NO_LABELS) for term in self.affinity)
            repelled = tuple(term for term in self.anti_affinity if term.includes(namespace, _NO_LABELS))
            self.selecting[namespace] = looks, repelled
        return self.selecting[namespace]


@dataclass(frozen=True, slots=True)
class PodAffinityCheck(NodeCheck):
    """Judges the places that a node is in."""

    rules: AffinityRules
    attracting: Counts
    """Pods that all affinity terms select, by domain."""
    repelling: Counts
    """Pods that an anti-affinity term selects, by domain."""
    avoiding: Counts
    """Anti-affinity terms of pods that select this pod, by domain."""

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node far from pods to be near, near pods to be away from, or near pods that avoid this one."""
        labels = node.node.labels
        if not self._is_near(labels):
            return _AFFINITY
        for term in self.rules.anti_affinity:
            value = labels.get(term.topology_key)
            if value is not None and self.repelling.get((term.topology_key, value), 0) > 0:
                return _ANTI_AFFINITY
        if self.avoiding and any(self.avoiding.get(domain, 0) > 0 for domain in labels.items()):
            return _EXISTING
        return None

    def _is_near(self, labels: Labels) -> bool:
        is_near = True
        for term in self.rules.affinity:
            value = labels.get(term.topology_key)
            if value is None:
                return False
            is_near = is_near and self.attracting.get((term.topology_key, value), 0) > 0
        # The first pod of a group that matches itself may go anywhere.
        return is_near or (not self.attracting and self.rules.matches(self.rules.pod))

    def with_pods(self, pods: Sequence[Pod], node: NodeInfo) -> "PodAffinityCheck":
        """Count more pods on a node."""
        return self._count(pods, node, 1)

    def without_pods(self, pods: Sequence[Pod], node: NodeInfo) -> "PodAffinityCheck":
        """Count fewer pods on a node."""
        return self._count(pods, node, -1)

    def _count(self, pods: Sequence[Pod], node: NodeInfo, sign: int) -> "PodAffinityCheck":
        counts = tuple(dict(before) for before in (self.attracting, self.repelling, self.avoiding))
        for pod in pods:
            _count_pod(self.rules, pod, node.node.labels, counts, sign)
            _count_avoiding(self.rules, pod, node.node.labels, counts[2], sign)
        attracting, repelling, avoiding = counts
        return replace(self, attracting=attracting, repelling=repelling, avoiding=avoiding)


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Count the pods on all nodes by domain; skip the check where no term on either side matters."""
    snapshot, namespace = cycle.snapshot, cycle.pod.namespace
    affinity = read_required_terms(cycle.spec, "podAffinity", namespace)
    anti_affinity = read_required_terms(cycle.spec, "podAntiAffinity", namespace)
    if unread := _find_missing_kinds(snapshot, affinity + anti_affinity):
        return Unjudged(NAME, unread)
    rules = AffinityRules(
        cycle.pod,
        snapshot.find_namespace_labels(namespace),
        tuple(_resolve_namespaces(snapshot, term) for term in affinity),
        tuple(_resolve_namespaces(snapshot, term) for term in anti_affinity),
    )
    check = _count_nodes(rules, snapshot.nodes.values())
    return check if affinity or anti_affinity or check.avoiding else SKIPPED


def _find_missing_kinds(snapshot: Snapshot, terms: tuple[AffinityTerm, ...]) -> frozenset[str]:
    """Name unread kinds: pods always matter, namespaces where a term selects them by labels."""
    if not snapshot.find_missing_kinds(kinds.NAMESPACE):
        return snapshot.find_missing_kinds(kinds.POD)
    existing = (term for node in snapshot.nodes.values() for pod in node.pods for term in pod.anti_affinity)
    selects = any(term.namespace_selector.requirements for term in (*terms, *existing))
    return snapshot.find_missing_kinds(kinds.POD, *((kinds.NAMESPACE,) if selects else ()))


def _resolve_namespaces(snapshot: Snapshot, term: AffinityTerm) -> AffinityTerm:
    """Add the namespaces that a selector selects by their names; an empty selector still selects all."""
    if term.namespace_selector.is_empty or term.namespace_selector.requirements is None:
        return term
    selected = {name for (_, name), labels in snapshot.namespaces.items() if term.namespace_selector.matches(labels)}
    return replace(term, namespaces=term.namespaces | selected, namespace_selector=LabelSelector(None))


def _count_nodes(rules: AffinityRules, nodes: Iterable[NodeInfo]) -> PodAffinityCheck:
    counts: tuple[dict[TopologyDomain, int], ...] = ({}, {}, {})
    is_relevant: dict[str, bool] = {}
    for node in nodes:
        labels = node.node.labels
        for pod in node.pods:
            relevant = is_relevant.get(pod.namespace)
            if relevant is None:
                relevant = is_relevant[pod.namespace] = any(rules.find_selecting(pod.namespace))
            if relevant:
                _count_pod(rules, pod, labels, counts, 1)
            if pod.anti_affinity:
                _count_avoiding(rules, pod, labels, counts[2], 1)
    return PodAffinityCheck(rules, *counts)


def _count_pod(
    rules: AffinityRules, pod: Pod, labels: Labels, counts: tuple[dict[TopologyDomain, int], ...], sign: int
) -> None:
    looks, repelled = rules.find_selecting(pod.namespace)
    if looks and rules.selects_labels(pod.labels):
        for term in rules.affinity:
            _count_domain(counts[0], term, labels, sign)
    for term in repelled:
        if term.selector.matches(pod.labels):
            _count_domain(counts[1], term, labels, sign)


def _count_avoiding(
    rules: AffinityRules, pod: Pod, labels: Labels, avoiding: dict[TopologyDomain, int], sign: int
) -> None:
    for term in pod.anti_affinity:
        if term.selects(rules.pod.namespace, rules.pod.labels, rules.namespace_labels):
            _count_domain(avoiding, term, labels, sign)


def _count_domain(counts: dict[TopologyDomain, int], term: AffinityTerm, labels: Labels, sign: int) -> None:
    """Count one pod; a domain without any is removed, because an empty count has a meaning of its own."""
    value = labels.get(term.topology_key)
    if value is None:
        return
    domain = (term.topology_key, value)
    counts[domain] = counts.get(domain, 0) + sign
    if not counts[domain]:
        del counts[domain]
