"""kube-scheduler's own checks of one pod and one node, rule by rule, as the documentation of Kubernetes has them.

"Taints and Tolerations" and "Assigning Pods to Nodes"; the same on a real kube-scheduler:
tests/integration/kubernetes/test_diagnosis.py.
"""

from typing import Any

import pytest

from engine.diagnosis.facts import Evidence, NodeFacts
from engine.diagnosis.open_nodes import find_closing_check, is_selected

TAINT = {"key": "gpu", "value": "only", "effect": "NoSchedule"}


def a_node(*taints: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> NodeFacts:
    node = {"metadata": {"name": "n1", "labels": labels or {}}, "spec": {"taints": list(taints), **spec}}
    return NodeFacts("n1", Evidence("node", "/api/v1/nodes/n1"), node=node)


def build_toleration(**toleration: Any) -> dict[str, Any]:
    return {"tolerations": [toleration]}


@pytest.mark.parametrize(
    ("toleration", "is_open"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "only", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "only"}, True),  # the operator is Equal, an empty effect is every effect
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),  # an empty key with Exists is every taint
        ({"key": "gpu", "value": "other", "effect": "NoSchedule"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"value": "only"}, False),  # an empty key without Exists is none
    ],
)
def test_a_toleration_matches_key_value_and_effect(toleration: dict[str, Any], is_open: bool) -> None:
    assert (find_closing_check(build_toleration(**toleration), a_node(TAINT)) is None) is is_open


def test_a_taint_that_only_prefers_closes_nothing() -> None:
    assert find_closing_check({}, a_node(TAINT | {"effect": "PreferNoSchedule"})) is None


def test_a_cordoned_node_is_open_to_who_tolerates_it() -> None:
    node = a_node({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, unschedulable=True)
    closed = find_closing_check({}, node)
    assert closed
    assert closed.code == "NodeCordoned"
    assert find_closing_check(build_toleration(key="node.kubernetes.io/unschedulable", operator="Exists"), node) is None


def build_selector(**expression: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "pool", "operator": "In", "values": ["a100", "h100"]}, True),
        ({"key": "pool", "operator": "In", "values": ["t4"]}, False),
        ({"key": "pool", "operator": "NotIn", "values": ["t4"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, True),  # a label that is not there is not in the list
        ({"key": "pool", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "Exists"}, False),
        ({"key": "zone", "operator": "DoesNotExist"}, True),
        ({"key": "gpus", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "gpus", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "pool", "operator": "Gt", "values": ["7"]}, False),  # not a number
        ({"key": "pool", "operator": "Unknown"}, False),
    ],
)
def test_an_expression_is_compared_with_the_label(expression: dict[str, Any], matches: bool) -> None:
    node = a_node(labels={"pool": "a100", "gpus": "8"})
    assert is_selected(build_selector(**expression), node) is matches


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    node = a_node(labels={"pool": "a100"})
    spec = build_selector(key="pool", operator="In", values=["t4"])
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"] += [{}]
    assert not is_selected(spec, node)
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    required["nodeSelectorTerms"] += [{"matchFields": fields}]
    assert is_selected(spec, node)


def test_a_selector_needs_every_label() -> None:
    node = a_node(labels={"pool": "a100"})
    assert is_selected({"nodeSelector": {"pool": "a100"}}, node)
    assert not is_selected({"nodeSelector": {"pool": "a100", "zone": "a"}}, node)
