"""Obstacles of the filters that look at other pods: host ports, pod affinity, topology spread."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.judged_labels import format_requirement
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from engine.filters import topology_spread
from engine.filters.pod_affinity import PodAffinityCheck
from engine.filters.pod_affinity import prepare as prepare_pod_affinity
from engine.filters.topology_spread import SpreadCheck
from engine.snapshot.affinity_terms import AffinityTerm
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import HostPortBinding, Pod
from engine.snapshot.selectors import LabelSelector

_MAX_DOMAINS: Final = 4
_ANTI: Final = "anti-affinity"
_EXISTING: Final = "existing pods"
_MISSING_LABEL: Final = "missing required label"


def describe_ports(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe the host ports that are taken, and by whom."""
    details = {name: _find_port_holder(cluster.get_node(name), cluster.cycle.pod.host_ports) for name in refusals}
    ports = [f"{port.port}/{port.protocol}" for port in cluster.cycle.pod.host_ports]
    words = {
        "ports": shorten_list(ports),
        "holders": shorten_list([f"{text} on {name}" for name, text in sorted(details.items()) if text]),
    }
    clauses = ["ports", *(["holders"] if any(details.values()) else [])]
    obstacle = cluster.build_obstacle("PortTaken", refusals, words, reasons=refusals, details=details)
    yield obstacle._replace(clauses=clauses)


def _find_port_holder(node: NodeInfo, ports: Sequence[HostPortBinding]) -> str:
    for pod in node.pods:
        for taken in pod.host_ports:
            if any(port.is_conflicting(taken) for port in ports):
                return f"{pod.namespace}/{pod.name} has {taken.port}/{taken.protocol}"
    return ""


def describe_pod_affinity(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe the terms about other pods: near which pods the pod has to be, away from which, who stays away."""
    check = prepare_pod_affinity(cluster.cycle)
    if not isinstance(check, PodAffinityCheck):
        return
    groups: dict[str, list[str]] = {}
    for name, refusal in refusals.items():
        groups.setdefault(refusal.reasons[0], []).append(name)
    for reason, nodes in groups.items():
        if _EXISTING in reason:
            terms, code = _list_avoiding(cluster, nodes), "ExistingAntiAffinity"
        elif _ANTI in reason:
            terms, code = _list_repelled(cluster, check, nodes), "PodAntiAffinityMismatch"
        else:
            terms, code = [format_term(term) for term in check.rules.affinity], "PodAffinityMismatch"
        words: dict[str, Word] = {"terms": shorten_list(terms)}
        obstacle = cluster.build_obstacle(code, nodes, words, reasons=refusals)
        yield obstacle._replace(clauses=[*(["terms"] if terms else []), *obstacle.clauses])


def format_term(term: AffinityTerm) -> str:
    """Format a term: the labels of the pods that it selects, and the topology."""
    return f"{format_selector(term.selector)} by {term.topology_key}"


def format_selector(selector: LabelSelector) -> str:
    """Format a selector of pods."""
    if selector.requirements is None:
        return "no pods"
    return ", ".join(map(format_requirement, selector.requirements)) or "all pods"


def _list_repelled(cluster: JudgedCluster, check: PodAffinityCheck, nodes: Sequence[str]) -> list[str]:
    """List the anti-affinity terms with the pods that they select in the domains of these nodes."""
    texts = []
    for term in check.rules.anti_affinity:
        domains = {cluster.get_node(name).node.labels.get(term.topology_key) for name in nodes}
        pods = [
            pod
            for info in cluster.snapshot.nodes.values()
            if info.node.labels.get(term.topology_key) in domains
            for pod in info.pods
            if term.includes(pod.namespace, {}) and term.selector.matches(pod.labels)
        ]
        if pods:
            texts.append(f"{format_term(term)}: {_list_pods(pods)}")
    return texts


def _list_avoiding(cluster: JudgedCluster, nodes: Sequence[str]) -> list[str]:
    """List pods whose anti-affinity selects this pod, with their terms."""
    judged_pod, labels = cluster.cycle.pod, cluster.snapshot.find_namespace_labels(cluster.cycle.pod.namespace)
    texts: dict[str, list[Pod]] = {}
    for info in cluster.snapshot.nodes.values():
        for pod in info.pods:
            for term in pod.anti_affinity:
                domain = info.node.labels.get(term.topology_key)
                concerned = any(cluster.get_node(name).node.labels.get(term.topology_key) == domain for name in nodes)
                if domain is not None and concerned and term.selects(judged_pod.namespace, judged_pod.labels, labels):
                    texts.setdefault(format_term(term), []).append(pod)
    return [f"{text}: {_list_pods(pods)}" for text, pods in texts.items()]


def _list_pods(pods: Sequence[Pod]) -> str:
    names = [f"{pod.namespace}/{pod.name}" for pod in pods]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def describe_spread(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe the constraint that one more pod would break, with the pods of each domain."""
    check = topology_spread.prepare(cluster.cycle)
    if not isinstance(check, SpreadCheck):
        return
    for is_label, nodes in _split_by_label(refusals):
        texts = [
            _format_constraint(check, position, is_label=is_label)
            for position in range(len(check.rules.constraints))
            if any(_breaks(check, position, cluster.get_node(name), is_label=is_label) for name in nodes)
        ]
        words: dict[str, Word] = {"constraints": shorten_list(texts)}
        obstacle = cluster.build_obstacle("TopologySpread", nodes, words, reasons=refusals)
        yield obstacle._replace(clauses=[*(["constraints"] if texts else []), *obstacle.clauses])


def _split_by_label(refusals: Refusals) -> Iterator[tuple[bool, list[str]]]:
    missing = [name for name, refusal in refusals.items() if _MISSING_LABEL in refusal.reasons[0]]
    uneven = [name for name in refusals if name not in frozenset(missing)]
    return ((is_label, nodes) for is_label, nodes in ((True, missing), (False, uneven)) if nodes)


def _breaks(check: SpreadCheck, position: int, node: NodeInfo, *, is_label: bool) -> bool:
    """Tell whether a node lacks the label of a constraint, or would be too full for it."""
    constraint = check.rules.constraints[position]
    value = node.node.labels.get(constraint.topology_key)
    if value is None or is_label:
        return value is None and is_label
    count = check.domains[position].get(value, 0) + constraint.selects_itself
    return count - check.minima[position] > constraint.max_skew


def _format_constraint(check: SpreadCheck, position: int, *, is_label: bool) -> str:
    constraint = check.rules.constraints[position]
    if is_label:
        return f"they have no label {constraint.topology_key}"
    counts = Counter(dict(check.domains[position]))
    domains = ", ".join(f"{value} {count}" for value, count in counts.most_common(_MAX_DOMAINS))
    few = (
        f" ({len(counts)} domains, minDomains {constraint.min_domains})" if len(counts) < constraint.min_domains else ""
    )
    return f"maxSkew {constraint.max_skew} over {constraint.topology_key}, pods there: {domains}{few}"
