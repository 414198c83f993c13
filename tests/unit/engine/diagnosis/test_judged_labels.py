"""Obstacles of the filters that look at the node itself, worked out on small clusters.

The rules are those of "Taints and Tolerations" and "Assigning Pods to Nodes" in the documentation of Kubernetes.
"""

import pytest

from engine.diagnosis.judged_labels import format_requirement, format_taint, list_failed_conditions
from engine.diagnosis.judged_nodes import derive_judged_obstacles
from engine.diagnosis.outcome import FoundObstacle
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.filters.node_affinity import read_required_affinity
from engine.snapshot.nodes import Node, Taint
from engine.snapshot.reading import read_snapshot
from engine.snapshot.selectors import Requirement
from schemas.json_types import Json
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.layer_objects import to_english


def find_obstacles(spec: Json, *nodes: Json) -> list[FoundObstacle]:
    """Find the obstacles of a pod with these fields of its spec."""
    pod = a_pod()
    pod["spec"] |= spec
    snapshot = read_snapshot(nodes, ())
    judgement = judge(snapshot, pod, alone=True)
    assert isinstance(judgement, Judgement)
    return derive_judged_obstacles(snapshot, judgement)


def with_taints(name: str, *taints: tuple[str, str, str], cordoned: bool = False) -> Json:
    node = a_node(name)
    node["spec"] = node.get("spec", {}) | {
        "taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in taints],
        "unschedulable": cordoned,
    }
    return node


CORDON = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
NOT_READY = ("node.kubernetes.io/not-ready", "", "NoExecute")
GPU, BATCH = ("gpu", "only", "NoSchedule"), ("batch", "", "NoExecute")
TAINTED = "TaintNotTolerated"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([with_taints("n1", GPU), with_taints("n2", GPU)], [(TAINTED, "gpu=only:NoSchedule")]),
        # Where they differ they are counted, the most frequent first.
        ([with_taints("n1", BATCH), with_taints("n2", GPU), with_taints("n3", GPU)],
         [(TAINTED, "gpu=only:NoSchedule (2 nodes), batch:NoExecute (1 node)")]),
        # All taints of a node are in the way, and kube-scheduler names the first.
        ([with_taints("n1", GPU, BATCH)], [(TAINTED, "gpu=only:NoSchedule, batch:NoExecute")]),
        ([with_taints("n1", GPU, ("soft", "", "PreferNoSchedule"))], [(TAINTED, "gpu=only:NoSchedule")]),
        ([with_taints("n1", NOT_READY)], [("NodeNotReady", "node.kubernetes.io/not-ready:NoExecute")]),
        ([with_taints("n1", GPU, NOT_READY)],
         [(TAINTED, "gpu=only:NoSchedule"), ("NodeNotReady", "node.kubernetes.io/not-ready:NoExecute")]),
        # Kubernetes taints a cordoned node, which another filter has refused already.
        ([with_taints("n1", CORDON, cordoned=True)], [("NodeCordoned", None)]),
        ([with_taints("n1", CORDON)], [("NodeCordoned", "node.kubernetes.io/unschedulable:NoSchedule")]),
        ([with_taints("n1", CORDON, GPU, cordoned=True)], [("NodeCordoned", None), (TAINTED, "gpu=only:NoSchedule")]),
    ],
)  # fmt: skip
def test_taints_are_described_by_what_they_say_of_the_node(
    nodes: list[Json], expected: list[tuple[str, str | None]]
) -> None:
    obstacles = find_obstacles({}, *nodes)
    described = [
        (item.code, to_english(item.words["taints"]) if "taints" in item.words else None) for item in obstacles
    ]
    assert described == expected
    for item in obstacles:
        assert ("taints" in item.clauses) == (item.code == TAINTED)


def test_a_refused_node_is_evidence_with_its_taints() -> None:
    [obstacle] = find_obstacles({}, with_taints("n1", GPU, BATCH), a_node("n2"))
    assert [evidence.words for evidence in obstacle.evidence] == [
        "node(s) had untolerated taint(s): gpu=only:NoSchedule, batch:NoExecute"
    ]
    assert (obstacle.clauses, obstacle.nodes, obstacle.numbers) == (
        ["taints", "nodes"], ["n1"], {"nodes": 1, "of_nodes": 2},
    )  # fmt: skip


def test_a_toleration_covers_one_taint_and_not_the_others() -> None:
    [obstacle] = find_obstacles({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, with_taints("n1", GPU, BATCH))
    assert to_english(obstacle.words["taints"]) == "batch:NoExecute"


def test_a_pod_that_names_another_node() -> None:
    # A stored pod with a node is bound: this one is judged as if it were not.
    [obstacle] = [item for item in find_obstacles({"nodeName": "n9"}, a_node("n1")) if item.code == "NodeNameMismatch"]
    assert (obstacle.words["wanted"], obstacle.nodes) == ("n9", ["n1"])


def build_affinity(*terms: Json) -> Json:
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": list(terms)}}}}  # fmt: skip


def an_expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def with_labels(name: str, **labels: str) -> Json:
    return a_node(name, labels=labels)


@pytest.mark.parametrize(
    ("spec", "nodes", "labels", "values"),
    [
        ({"nodeSelector": {"tier": "fast"}}, [with_labels("n1", tier="slow"), with_labels("n2")],
         "tier=fast", "tier = slow (1)"),
        ({"nodeSelector": {"tier": "fast"}}, [with_labels("n1")], "tier=fast", "no tier"),
        # A condition that some of the refused nodes meet is counted.
        ({"nodeSelector": {"tier": "fast", "zone": "a"}},
         [with_labels("n1", tier="fast", zone="b"), with_labels("n2", zone="c"), with_labels("n3", zone="c")],
         "zone=a, tier=fast (not met by 2)", "tier = fast (1), zone = c (2), b (1)"),
        # A condition that every refused node meets is not in the way.
        ({"nodeSelector": {"tier": "fast", "zone": "a"}}, [with_labels("n1", tier="fast", zone="b")],
         "zone=a", "zone = b (1)"),
        # Three values are listed.
        ({"nodeSelector": {"zone": "x"}}, [with_labels(f"n{zone}", zone=zone) for zone in "abcd"],
         "zone=x", "zone = a (1), b (1), c (1)"),
        (build_affinity({"matchExpressions": [an_expression("tier", "In", "fast", "new")]}), [with_labels("n1")],
         "tier in (fast, new)", "no tier"),
    ],
)  # fmt: skip
def test_what_the_pod_selects_is_compared_with_the_labels_of_the_nodes(
    spec: Json, nodes: list[Json], labels: str, values: str
) -> None:
    [obstacle] = find_obstacles(spec, *nodes)
    assert obstacle.code == "AffinityMismatch"
    assert (to_english(obstacle.words["labels"]), to_english(obstacle.words["values"])) == (labels, values)
    assert obstacle.clauses == ["labels", "values"]


def test_a_node_that_was_refused_for_its_labels_is_evidence_with_its_conditions() -> None:
    [obstacle] = find_obstacles({"nodeSelector": {"tier": "fast", "zone": "a"}}, with_labels("n1"), with_labels(
        "n2", tier="fast", zone="a"))  # fmt: skip
    words = "node(s) didn't match Pod's node affinity/selector: tier=fast; zone=a"
    assert [evidence.words for evidence in obstacle.evidence] == [words]
    assert obstacle.clauses == ["labels", "values", "nodes"]


FAST, NEW = an_expression("tier", "In", "fast"), an_expression("age", "Lt", "3")
ON_N1 = {"matchFields": [an_expression("metadata.name", "In", "n1")]}


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        ([{"matchExpressions": [FAST, NEW]}], {}, ["tier=fast and age < 3"]),
        ([{"matchExpressions": [FAST, NEW]}], {"tier": "fast"}, ["age < 3"]),
        ([{"matchExpressions": [FAST]}, {"matchExpressions": [NEW]}], {}, ["tier=fast or age < 3"]),
        ([{"matchExpressions": [FAST]}, {"matchExpressions": [FAST]}], {}, ["tier=fast"]),
        # One term is enough.
        ([{"matchExpressions": [FAST]}, {"matchExpressions": [NEW]}], {"age": "2"}, []),
        ([ON_N1], {}, ["metadata.name=n1"]),
        ([ON_N1 | {"matchExpressions": [FAST]}], {"tier": "fast"}, ["metadata.name=n1"]),
        # A term without conditions matches nothing, and names nothing.
        ([{}], {}, []),
    ],
)
def test_the_conditions_that_a_node_does_not_meet(
    terms: list[Json], labels: dict[str, str], expected: list[str]
) -> None:
    node = read_snapshot([a_node("n2", labels=labels)], ()).nodes["n2"].node
    assert isinstance(node, Node)
    assert list_failed_conditions(read_required_affinity(build_affinity(*terms)), node) == expected
    both = read_required_affinity(build_affinity(*terms) | {"nodeSelector": {"zone": "a"}})
    assert list_failed_conditions(both, node) == ["zone=a", *expected]


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        (Requirement("tier", "In", ("fast",)), "tier=fast"),
        (Requirement("tier", "In", ("fast", "new")), "tier in (fast, new)"),
        (Requirement("tier", "NotIn", ("slow",)), "tier not in (slow)"),
        (Requirement("tier", "Exists", ()), "tier (any value)"),
        (Requirement("tier", "DoesNotExist", ()), "no tier"),
        (Requirement("age", "Gt", ("3",)), "age > 3"),
        (Requirement("age", "Lt", ("3",)), "age < 3"),
    ],
)
def test_a_condition_in_one_phrase(requirement: Requirement, text: str) -> None:
    assert format_requirement(requirement) == text


def test_a_taint_as_kubectl_writes_it() -> None:
    assert format_taint(Taint("gpu", "only", "NoSchedule")) == "gpu=only:NoSchedule"
    assert format_taint(Taint("gpu", "", "NoExecute")) == "gpu:NoExecute"
