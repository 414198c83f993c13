"""Obstacles of the filters that look at the node itself: cordon, name, taints, labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.diagnosis.judged_cluster import JudgedCluster, Refusals
from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.texts import NAMED_TAINTS, find_obstacle_of_taint, write_phrase
from engine.diagnosis.wording import join_phrases
from engine.filters import node_unschedulable
from engine.filters.node_affinity import RequiredNodeAffinity, read_required_affinity
from engine.filters.tolerations import Toleration, blocks_scheduling, find_untolerated, read_tolerations
from engine.snapshot.nodes import Node, Taint
from engine.snapshot.selectors import NodeSelectorTerm, Requirement
from schemas.answers.diagnosis import InBothLanguages

_MAX_VALUES: Final = 3
_WORDS: Final = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


def describe_cordon(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe cordoned nodes."""
    yield cluster.build_obstacle("NodeCordoned", refusals, {}, reasons=refusals)


def describe_name(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe a pod that names its node."""
    wanted = str(cluster.cycle.spec.get("nodeName") or "")
    yield cluster.build_obstacle("NodeNameMismatch", refusals, {"wanted": wanted}, reasons=refusals)


def describe_taints(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe taints by what they say of the node: cordoned, not ready, or meant for other pods."""
    tolerations = read_tolerations(cluster.cycle.spec)
    compares = cluster.cycle.release.has("TaintTolerationComparisonOperators")
    cordoned = cluster.group_refusals().get(node_unschedulable.NAME, {})
    groups: dict[str, dict[str, list[Taint]]] = {}
    for name in refusals:
        taints = list_untolerated(cluster.get_node(name).node, tolerations, compares=compares)
        for code, of_code in _split_taints(taints).items():
            # NodeUnschedulable has refused such a node already.
            if code != "NodeCordoned" or name not in cordoned:
                groups.setdefault(code, {})[name] = of_code
    for code, by_node in groups.items():
        details = {name: ", ".join(map(format_taint, taints)) for name, taints in by_node.items()}
        words = {"taints": join_phrases(_count_taints(by_node, cluster.judgement.total))}
        clauses = ["taints"] if code in NAMED_TAINTS else []
        obstacle = cluster.build_obstacle(code, by_node, words, reasons=refusals, details=details)
        # The taints first, then the nodes that have them.
        yield obstacle._replace(clauses=[*clauses, *obstacle.clauses])


def list_untolerated(node: Node, tolerations: Sequence[Toleration], *, compares: bool = False) -> list[Taint]:
    """List the taints that keep the pod from a node; kube-scheduler names only the first."""
    return [taint for taint in node.taints if find_untolerated((taint,), tuple(tolerations), compares=compares)]


def _split_taints(taints: Sequence[Taint]) -> dict[str, list[Taint]]:
    groups: dict[str, list[Taint]] = {}
    for taint in taints:
        if not blocks_scheduling(taint):
            continue
        groups.setdefault(find_obstacle_of_taint(taint.key), []).append(taint)
    return groups


def _count_taints(by_node: Mapping[str, Sequence[Taint]], total: int) -> list[InBothLanguages]:
    """List the taints, with the number of nodes where they differ."""
    counts = Counter(format_taint(taint) for taints in by_node.values() for taint in taints)
    if len(counts) == 1 or total == 1:
        return [InBothLanguages(en=taint, zh=taint) for taint in counts]
    return [write_phrase("counted_nodes", subject=taint, n=count) for taint, count in counts.most_common()]


def format_taint(taint: Taint) -> str:
    """Format a taint as kubectl does: key=value:effect."""
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def describe_affinity(cluster: JudgedCluster, refusals: Refusals) -> Iterator[FoundObstacle]:
    """Describe the labels that the pod selects, and what the refused nodes have instead."""
    affinity = read_required_affinity(cluster.cycle.spec)
    failures = {name: list_failed_conditions(affinity, cluster.get_node(name).node) for name in refusals}
    details = {name: "; ".join(conditions) for name, conditions in failures.items()}
    counts = Counter(condition for conditions in failures.values() for condition in conditions)
    labels = [_count_labels(text, count, len(refusals)) for text, count in counts.most_common()]
    values = _list_values(cluster, affinity, refusals)
    words = {"labels": join_phrases(labels), "values": join_phrases(values)}
    clauses = [*(["labels"] if labels else []), *(["values"] if values else [])]
    obstacle = cluster.build_obstacle("AffinityMismatch", refusals, words, reasons=refusals, details=details)
    yield obstacle._replace(clauses=[*clauses, *obstacle.clauses])


def _count_labels(text: str, count: int, total: int) -> InBothLanguages:
    return InBothLanguages(en=text, zh=text) if count == total else write_phrase("not_met_by", subject=text, n=count)


def list_failed_conditions(affinity: RequiredNodeAffinity, node: Node) -> list[str]:
    """List the pod's conditions on labels that a node does not meet, as ``key=value`` or ``key in (a, b)``."""
    failed = [f"{key}={value}" for key, value in affinity.labels.items() if node.labels.get(key) != value]
    if affinity.selector is None or affinity.selector.matches(node.labels, node.name):
        return failed
    # Of several terms one would do: all that keep the node out are named.
    terms = [_list_failed_expressions(term, node) for term in affinity.selector.terms]
    named = [" and ".join(expressions) for expressions in terms if expressions]
    return [*failed, *([" or ".join(dict.fromkeys(named))] if named else [])]


def _list_failed_expressions(term: NodeSelectorTerm, node: Node) -> list[str]:
    failed = [expression for expression in term.expressions if not expression.matches(node.labels)]
    failed += [field for field in term.fields if not field.matches({"metadata.name": node.name})]
    return list(map(format_requirement, failed))


def format_requirement(requirement: Requirement) -> str:
    """Format one condition on one label."""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "Exists":
            return f"{key} (any value)"
        case "DoesNotExist":
            return f"no {key}"
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
        case "Gt" | "Lt":
            return f"{key} {_WORDS[requirement.operator]} {' '.join(values)}"
    return f"{key} {_WORDS[requirement.operator]} ({', '.join(values)})"


def list_conditions(affinity: RequiredNodeAffinity) -> list[Requirement]:
    """List every condition on labels, that of the selector and those of all terms."""
    equals = [Requirement(key, "In", (value,)) for key, value in affinity.labels.items()]
    terms = affinity.selector.terms if affinity.selector else ()
    return [*equals, *(expression for term in terms for expression in term.expressions)]


def _list_values(cluster: JudgedCluster, affinity: RequiredNodeAffinity, refusals: Refusals) -> list[InBothLanguages]:
    """List the values that refused nodes have of the labels that they fail, or that none has the label."""
    nodes = [cluster.get_node(name).node for name in refusals]
    failed = [
        condition
        for condition in list_conditions(affinity)
        if not all(condition.matches(node.labels) for node in nodes)
    ]
    texts = []
    for key in dict.fromkeys(condition.key for condition in failed):
        counts = Counter(node.labels[key] for node in nodes if key in node.labels)
        values = ", ".join(f"{value} ({count})" for value, count in counts.most_common(_MAX_VALUES))
        texts.append(write_phrase("label_values" if values else "label_missing", key=key, values=values))
    return texts
