"""Obstacles of the filters that look at other pods, worked out on small clusters and counted by hand.

The rules are those of "Assigning Pods to Nodes" and "Pod Topology Spread Constraints" in Kubernetes' documentation.
"""

from typing import Any

import pytest

from engine.diagnosis.judged_neighbours import format_selector
from engine.diagnosis.judged_nodes import derive_judged_obstacles
from engine.diagnosis.outcome import FoundObstacle
from engine.filters.judge import judge
from engine.filters.judgement import Judgement
from engine.snapshot.reading import read_snapshot
from engine.snapshot.selectors import LabelSelector, Requirement
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, to_english

ZONE = "zone"


def find_obstacle(pod: Json, *objects: Json) -> FoundObstacle:
    """Find the only obstacle of a pod."""
    snapshot = read_snapshot(objects, ())
    judgement = judge(snapshot, pod, alone=True)
    assert isinstance(judgement, Judgement)
    [obstacle] = derive_judged_obstacles(snapshot, judgement)
    return obstacle


def a_zoned_node(name: str, zone: str = "") -> Json:
    return a_node(name, labels={ZONE: zone} if zone else {})


def a_placed_pod(name: str, node: str, *, namespace: str = "lab", labels: Json | None = None, **spec: Any) -> Json:
    return a_pod(name, metadata={"namespace": namespace, "labels": labels or {}}, spec={"nodeName": node, **spec})


def with_port(pod: Json, *ports: int) -> Json:
    pod["spec"]["containers"] = [{"name": "main", "ports": [{"hostPort": port, "containerPort": 1} for port in ports]}]
    return pod


def test_host_ports_are_described_with_the_pods_that_have_them() -> None:
    holders = [with_port(a_placed_pod("web", "n1"), 70, 80), with_port(a_placed_pod("db", "n2"), 90)]
    obstacle = find_obstacle(with_port(a_pod(), 80, 90), *holders, a_node("n1"), a_node("n2"))
    assert (obstacle.code, obstacle.clauses) == ("PortTaken", ["ports", "holders"])
    assert to_english(obstacle.words["ports"]) == "80/TCP, 90/TCP"
    assert to_english(obstacle.words["holders"]) == "lab/web has 80/TCP on n1, lab/db has 90/TCP on n2"
    [first, _] = obstacle.evidence
    assert first.words == "node(s) didn't have free ports for the requested pod ports: lab/web has 80/TCP"


def a_term(labels: Json | None = None, **fields: Any) -> Json:
    return {"labelSelector": {"matchLabels": labels or {}}, "topologyKey": ZONE, **fields}


def build_affinity(kind: str, *terms: Json) -> Json:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


WEB = {"app": "web"}
TEAM_A = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"team": "a"}}}


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (a_term(WEB), "pods with app=web by zone"),
        (a_term(WEB, labelSelector=None), "pods with no pods by zone"),
        (a_term(WEB, namespaces=["lab"]), "pods with app=web by zone"),
        (a_term(WEB, namespaces=["prod", "dev"]), "pods with app=web of the namespaces dev, prod by zone"),
        (a_term(WEB, namespaceSelector={}), "pods with app=web of any namespace by zone"),
        (a_term(WEB, namespaceSelector={"matchLabels": {"team": "a"}}),
         "pods with app=web of the namespaces with team=a (a) by zone"),
        (a_term(WEB, namespaceSelector={"matchLabels": {"team": "b"}}),
         "pods with app=web of the namespaces with team=b, which no namespace has, by zone"),
    ],
)  # fmt: skip
def test_a_pod_that_has_to_be_near_others_names_them(term: Json, text: str) -> None:
    pod = a_pod(spec=build_affinity("podAffinity", term))
    obstacle = find_obstacle(pod, a_zoned_node("n1", "a"), TEAM_A)
    assert (obstacle.code, obstacle.clauses) == ("PodAffinityMismatch", ["terms"])
    assert to_english(obstacle.words["terms"]) == text


def test_pods_in_the_domain_that_a_pod_keeps_away_from_are_named() -> None:
    """Pods of the whole domain count, of its namespace only, and those that no term selects do not."""
    pod = a_pod(spec=build_affinity("podAntiAffinity", a_term(WEB), a_term({"app": "absent"})))
    objects = [
        a_zoned_node("n1", "a"), a_zoned_node("n2", "a"), a_zoned_node("n3", "b"),
        a_placed_pod("web-1", "n1", labels=WEB), a_placed_pod("web-2", "n2", labels=WEB),
        a_placed_pod("web-3", "n1", labels=WEB, namespace="other"), a_placed_pod("db", "n1", labels={"app": "db"}),
    ]  # fmt: skip
    obstacle = find_obstacle(pod, *objects)
    assert (obstacle.code, obstacle.nodes) == ("PodAntiAffinityMismatch", ["n1", "n2"])
    assert to_english(obstacle.words["terms"]) == "pods with app=web by zone: lab/web-1 and 1 more"
    assert obstacle.clauses == ["terms", "nodes"]


def test_pods_that_keep_others_away_are_named_with_their_terms() -> None:
    job = {"job": "train"}
    away = build_affinity("podAntiAffinity", a_term(job))
    objects = [
        a_zoned_node("n1", "a"), a_zoned_node("n2", "b"), a_zoned_node("n3"),
        a_placed_pod("shy", "n1", **away), a_placed_pod("timid", "n1", **away),
        # One that selects other pods, and one without the label of the topology.
        a_placed_pod("web", "n1", **build_affinity("podAntiAffinity", a_term(WEB))), a_placed_pod("lost", "n3", **away),
    ]  # fmt: skip
    obstacle = find_obstacle(a_pod(metadata={"labels": job}), *objects)
    assert (obstacle.code, obstacle.nodes) == ("ExistingAntiAffinity", ["n1"])
    assert to_english(obstacle.words["terms"]) == "pods with job=train by zone: lab/shy and 1 more"


def build_spread(**fields: Any) -> Json:
    selector = {"matchLabels": WEB}
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint | fields]}


def list_web_pods(*nodes: str) -> list[Json]:
    return [a_placed_pod(f"web-{index}", node, labels=WEB) for index, node in enumerate(nodes)]


def test_a_constraint_is_described_with_the_pods_of_each_domain() -> None:
    """One more pod in zone a makes two more than in zone b."""
    pod = a_pod(metadata={"labels": WEB}, spec=build_spread())
    closed = a_node("n2", labels={ZONE: "b"}, allocatable={"pods": "1"})
    obstacle = find_obstacle(
        pod, a_zoned_node("n1", "a"), a_zoned_node("n3", "c"), closed, *list_web_pods("n1", "n1", "n3")
    )
    assert (obstacle.code, obstacle.nodes, obstacle.clauses) == (
        "TopologySpread",
        ["n1", "n3"],
        ["constraints", "nodes"],
    )
    assert to_english(obstacle.words["constraints"]) == "maxSkew 1 over zone, pods there: a 2, c 1, b 0"


def test_four_domains_are_listed() -> None:
    nodes = [a_zoned_node(f"n-{zone}", zone) for zone in "abcde"]
    pods = list_web_pods(*(f"n-{zone}" for zone in "aaaabbbccd"))
    obstacle = find_obstacle(a_pod(metadata={"labels": WEB}, spec=build_spread()), *nodes, *pods)
    assert to_english(obstacle.words["constraints"]) == "maxSkew 1 over zone, pods there: a 4, b 3, c 2, d 1"


def test_a_node_without_the_label_of_a_constraint_breaks_that_one() -> None:
    spec = build_spread()
    spec["topologySpreadConstraints"] += build_spread(topologyKey="rack")["topologySpreadConstraints"]
    obstacle = find_obstacle(a_pod(spec=spec), a_zoned_node("n1", "a"))
    assert (obstacle.code, obstacle.clauses) == ("TopologySpread", ["constraints"])
    assert to_english(obstacle.words["constraints"]) == "they have no label rack"


def test_a_constraint_that_only_some_nodes_break_is_named_and_others_are_not() -> None:
    """One more pod would be too many for zone a; each rack has one pod fewer than zone a, and stays within its skew."""
    spec = build_spread()
    spec["topologySpreadConstraints"] += build_spread(topologyKey="rack", maxSkew=2)["topologySpreadConstraints"]
    nodes = [a_node(f"n{index}", labels={ZONE: zone, "rack": str(index)}) for index, zone in enumerate("aab")]
    obstacle = find_obstacle(a_pod(metadata={"labels": WEB}, spec=spec), *nodes, *list_web_pods("n0", "n1"))
    assert obstacle.nodes == ["n0", "n1"]
    assert to_english(obstacle.words["constraints"]) == "maxSkew 1 over zone, pods there: a 2, b 0"


def test_one_node_that_breaks_a_constraint_is_enough_to_name_it() -> None:
    spec = build_spread()
    spec["topologySpreadConstraints"] += build_spread(topologyKey="rack")["topologySpreadConstraints"]
    unlabeled = [a_zoned_node("n1", "a"), a_node("n2", labels={"rack": "r"})]
    obstacle = find_obstacle(a_pod(spec=spec), *unlabeled)
    assert to_english(obstacle.words["constraints"]) == "they have no label zone, they have no label rack"


def test_one_pod_that_keeps_others_away_is_named_for_its_domain() -> None:
    away = build_affinity("podAntiAffinity", a_term({"job": "train"}))
    objects = [a_zoned_node("n1", "a"), a_zoned_node("n2", "b"), a_placed_pod("shy", "n1", **away)]
    objects.append(a_placed_pod("timid", "n2", **away))
    obstacle = find_obstacle(a_pod(metadata={"labels": {"job": "train"}}), *objects)
    assert (obstacle.nodes, obstacle.clauses) == (["n1", "n2"], ["terms"])
    assert to_english(obstacle.words["terms"]) == "pods with job=train by zone: lab/shy and 1 more"


@pytest.mark.parametrize(("minimum", "end"), [(2, ""), (3, " (2 domains, minDomains 3)")])
def test_fewer_domains_than_wanted_are_a_cause(minimum: int, end: str) -> None:
    """With fewer domains than ``minDomains`` the emptiest counts as empty."""
    pod = a_pod(metadata={"labels": WEB}, spec=build_spread(minDomains=minimum))
    pods = list_web_pods("n1", "n1", "n2", "n2") if minimum == 3 else list_web_pods("n1", "n1", "n1", "n2")
    obstacle = find_obstacle(pod, a_zoned_node("n1", "a"), a_zoned_node("n2", "b"), *pods)
    counts = "a 2, b 2" if minimum == 3 else "a 3, b 1"
    assert to_english(obstacle.words["constraints"]) == f"maxSkew 1 over zone, pods there: {counts}{end}"
    assert obstacle.nodes == (["n1", "n2"] if minimum == 3 else ["n1"])


def test_a_selector_in_one_phrase() -> None:
    assert format_selector(LabelSelector(None)) == "no pods"
    assert format_selector(LabelSelector(())) == "all pods"
    requirements = (Requirement("app", "In", ("web",)), Requirement("old", "DoesNotExist", ()))
    assert format_selector(LabelSelector(requirements)) == "app=web, no old"
