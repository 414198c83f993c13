"""Obstacles of the filters that look at other pods: host ports, pod affinity, topology spread."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.judged_labels import format_requirement
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import join_phrases, shorten_list
from engine.filters import topology_spread
from engine.filters.pod_affinity import PodAffinityCheck
from engine.filters.pod_affinity import prepare as prepare_pod_affinity
from engine.filters.topology_spread import SpreadCheck
from engine.snapshot.affinity_terms import AffinityTerm, read_required_terms
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import HostPortBinding, Pod
from engine.snapshot.selectors import LabelSelector
from schemas.answers.diagnosis import InBothLanguages

_MAX_DOMAINS: Final = 4
_AFFINITY: Final = "podAffinity"
_ANTI_AFFINITY: Final = "podAntiAffinity"
_ANTI: Final = "anti-affinity"
_EXISTING: Final = "existing pods"
_MISSING_LABEL: Final = "missing required label"


def describe_ports(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe the host ports that are taken, and by whom."""
    host_ports = cluster.cycle.pod.host_ports
    holders = {name: holder for name in refusals if (holder := _find_port_holder(cluster.get_node(name), host_ports))}
    ports = [f"{port.port}/{port.protocol}" for port in cluster.cycle.pod.host_ports]
    words = {
        "ports": shorten_list(ports),
        "holders": join_phrases([write_phrase("port_holder", **holders[name], node=name) for name in sorted(holders)]),
    }
    clauses = ["ports", *(["holders"] if holders else [])]
    details = {name: "{pod} has {port}".format(**holder) for name, holder in holders.items()}
    obstacle = cluster.build_obstacle("PortTaken", refusals, words, reasons=refusals, details=details)
    yield obstacle._replace(clauses=clauses)


def _find_port_holder(node: NodeInfo, ports: Sequence[HostPortBinding]) -> dict[str, str]:
    """Find the pod that has one of the ports, and the port; empty without any."""
    for pod in node.pods:
        for taken in pod.host_ports:
            if any(port.is_conflicting(taken) for port in ports):
                return {"pod": f"{pod.namespace}/{pod.name}", "port": f"{taken.port}/{taken.protocol}"}
    return {}


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
            terms, code = (
                [_write_term(cluster, term) for term in _read_terms(cluster, _AFFINITY)],
                "PodAffinityMismatch",
            )
        words: dict[str, Word] = {"terms": join_phrases(terms)}
        obstacle = cluster.build_obstacle(code, nodes, words, reasons=refusals)
        yield obstacle._replace(clauses=[*(["terms"] if terms else []), *obstacle.clauses])


def _read_terms(cluster: JudgedCluster, kind: str) -> tuple[AffinityTerm, ...]:
    """Read the pod's terms as they were written."""
    return read_required_terms(cluster.cycle.spec, kind, cluster.cycle.pod.namespace)


def _write_term(cluster: JudgedCluster, term: AffinityTerm) -> InBothLanguages:
    """Write a term: the labels of the pods that it selects, their namespaces if they are others, and the topology."""
    words: dict[str, Word] = {"selector": format_selector(term.selector), "topology": term.topology_key}
    if term.namespace_selector.requirements is None:
        if term.namespaces == {cluster.cycle.pod.namespace}:
            return write_phrase("affinity_term", **words)
        return write_phrase("affinity_term_in", namespaces=shorten_list(sorted(term.namespaces)), **words)
    labels = ", ".join(map(format_requirement, term.namespace_selector.requirements))
    if not labels:
        return write_phrase("affinity_term_anywhere", **words)
    looked_into = [name for (_, name), of_name in cluster.snapshot.namespaces.items() if term.includes(name, of_name)]
    phrase = "affinity_term_with" if looked_into else "affinity_term_nowhere"
    return write_phrase(phrase, labels=labels, namespaces=shorten_list(sorted(looked_into)), **words)


def format_selector(selector: LabelSelector) -> str:
    """Format a selector of pods."""
    if selector.requirements is None:
        return "no pods"
    return ", ".join(map(format_requirement, selector.requirements)) or "all pods"


def _list_repelled(cluster: JudgedCluster, check: PodAffinityCheck, nodes: Sequence[str]) -> list[InBothLanguages]:
    """List the anti-affinity terms with the pods that they select in the domains of these nodes."""
    texts: list[InBothLanguages] = []
    # Those of the check have the namespaces in place of their selector.
    for written, term in zip(_read_terms(cluster, _ANTI_AFFINITY), check.rules.anti_affinity, strict=True):
        domains = {cluster.get_node(name).node.labels.get(term.topology_key) for name in nodes}
        pods = [
            pod
            for info in cluster.snapshot.nodes.values()
            if info.node.labels.get(term.topology_key) in domains
            for pod in info.pods
            if term.includes(pod.namespace, {}) and term.selector.matches(pod.labels)
        ]
        if pods:
            texts.append(write_phrase("term_with_pods", term=_write_term(cluster, written), pods=_list_pods(pods)))
    return texts


def _list_avoiding(cluster: JudgedCluster, nodes: Sequence[str]) -> list[InBothLanguages]:
    """List pods whose anti-affinity selects this pod, with their terms."""
    judged_pod, labels = cluster.cycle.pod, cluster.snapshot.find_namespace_labels(cluster.cycle.pod.namespace)
    avoiding: dict[str, tuple[InBothLanguages, list[Pod]]] = {}
    for info in cluster.snapshot.nodes.values():
        for pod in info.pods:
            for term in pod.anti_affinity:
                domain = info.node.labels.get(term.topology_key)
                concerned = any(cluster.get_node(name).node.labels.get(term.topology_key) == domain for name in nodes)
                if domain is not None and concerned and term.selects(judged_pod.namespace, judged_pod.labels, labels):
                    text = _write_term(cluster, term)
                    avoiding.setdefault(text.en, (text, []))[1].append(pod)
    return [write_phrase("term_with_pods", term=text, pods=_list_pods(pods)) for text, pods in avoiding.values()]


def _list_pods(pods: Sequence[Pod]) -> InBothLanguages:
    name = f"{pods[0].namespace}/{pods[0].name}"
    return write_phrase("pod_and_more", pod=name, more=len(pods) - 1) if len(pods) > 1 else shorten_list([name])


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
        words: dict[str, Word] = {"constraints": join_phrases(texts)}
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


def _format_constraint(check: SpreadCheck, position: int, *, is_label: bool) -> InBothLanguages:
    constraint = check.rules.constraints[position]
    if is_label:
        return write_phrase("spread_no_label", topology=constraint.topology_key)
    counts = Counter(dict(check.domains[position]))
    domains = ", ".join(f"{value} {count}" for value, count in counts.most_common(_MAX_DOMAINS))
    words: dict[str, Word] = {"skew": constraint.max_skew, "topology": constraint.topology_key, "domains": domains}
    if len(counts) >= constraint.min_domains:
        return write_phrase("spread", **words)
    return write_phrase("spread_few_domains", n=len(counts), minimum=constraint.min_domains, **words)
