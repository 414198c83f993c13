"""Nodes that pass kube-scheduler's own checks, as far as these need only the pod and the node.

The rules: NodeUnschedulable, TaintToleration, NodeAffinity and NodeName of kube-scheduler, as the documentation of
Kubernetes has them ("Taints and Tolerations", "Assigning Pods to Nodes"). Checks that count other pods (CPU, ports,
spread) are not here. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.diagnosis.facts import NodeFacts
from engine.diagnosis.texts import CORDON_TAINT, NAMED_TAINTS, find_obstacle_of_taint
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects

_BLOCKING: Final = frozenset(("NoSchedule", "NoExecute"))


class Closed(NamedTuple):
    """Obstacle that closes a node to the pod, with the taint if it is one."""

    code: str
    taint: str = ""


def find_closing_check(spec: Fields, state: NodeFacts) -> Closed | None:
    """Find the first of kube-scheduler's checks that refuses the node; None for a node that passes."""
    node = state.node or {}
    tolerations = list(iterate_objects(spec, "tolerations"))
    taints = list(_iterate_taints(node))
    keys = {get_text(taint, "key") for taint in taints}
    # Kubernetes taints cordoned nodes, and nodes that are not ready.
    cordon = {"key": CORDON_TAINT, "effect": "NoSchedule"}
    if (get_object(node, "spec").get("unschedulable") is True or CORDON_TAINT in keys) and not _is_tolerated(
        cordon, tolerations
    ):
        return Closed("NodeCordoned")
    untolerated = [taint for taint in taints if not _is_tolerated(taint, tolerations)]
    codes = {find_obstacle_of_taint(get_text(taint, "key")) for taint in untolerated}
    if "NodeNotReady" in codes:
        return Closed("NodeNotReady")
    if untolerated:
        # A taint that somebody set stays when the node is healthy again.
        code = next(code for code in NAMED_TAINTS if code in codes)
        return Closed(code, ", ".join(map(_format_taint, untolerated)))
    return None if _matches(spec, node, state.name) else Closed("AffinityMismatch")


def is_selected(spec: Fields, state: NodeFacts) -> bool:
    """Tell whether the node matches the pod's node selector and required affinity."""
    return _matches(spec, state.node or {}, state.name)


def _iterate_taints(node: Fields) -> Iterator[Fields]:
    return (taint for taint in iterate_objects(node, "spec", "taints") if get_text(taint, "effect") in _BLOCKING)


def _format_taint(taint: Fields) -> str:
    """Format a taint as kubectl does: key=value:effect."""
    value = get_text(taint, "value")
    return f"{get_text(taint, 'key')}{'=' if value else ''}{value}:{get_text(taint, 'effect')}"


def _is_tolerated(taint: Fields, tolerations: Sequence[Fields]) -> bool:
    return any(_is_tolerated_by(toleration, taint) for toleration in tolerations)


def _is_tolerated_by(toleration: Fields, taint: Fields) -> bool:
    key, operator = get_text(toleration, "key"), get_text(toleration, "operator") or "Equal"
    if get_text(toleration, "effect") not in ("", get_text(taint, "effect")):
        return False
    # Without a key, `Exists` tolerates every taint.
    if key not in ("", get_text(taint, "key")) or (not key and operator != "Exists"):
        return False
    return operator == "Exists" or get_text(toleration, "value") == get_text(taint, "value")


def _matches(spec: Fields, node: Fields, name: str) -> bool:
    labels = get_object(node, "metadata", "labels")
    selector = get_object(spec, "nodeSelector")
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = get_object(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    # One term is enough; a term without any expression matches nothing.
    return any(_matches_term(term, labels, name) for term in iterate_objects(required, "nodeSelectorTerms"))


def _matches_term(term: Fields, labels: Mapping[str, Any], name: str) -> bool:
    expressions, fields = list(iterate_objects(term, "matchExpressions")), list(iterate_objects(term, "matchFields"))
    return bool(expressions or fields) and (
        all(_matches_expression(expression, labels) for expression in expressions)
        and all(_matches_expression(field, {"metadata.name": name}) for field in fields)
    )


def _matches_expression(expression: Fields, labels: Mapping[str, Any]) -> bool:
    key, listed = get_text(expression, "key"), expression.get("values")
    value, values = labels.get(key), listed if isinstance(listed, list) else []
    match get_text(expression, "operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, values)
        case _:
            return False


def _compares(operator: str, value: Any, values: Sequence[Any]) -> bool:
    try:
        (limit,), number = map(int, values), int(str(value))
    except (TypeError, ValueError):
        return False
    return number > limit if operator == "Gt" else number < limit
