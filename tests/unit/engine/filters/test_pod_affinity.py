"""InterPodAffinity: rules of kube-scheduler 1.36 about pods near and far."""

from typing import Any

import pytest

from engine.filters.judgement import JudgedOutcome
from engine.snapshot import kinds
from tests.support.builders.cluster import a_node, a_pod
from tests.support.builders.judged import get_codes, get_reasons, judge_pod

FAR = ("node(s) didn't match pod affinity rules",)
NEAR = ("node(s) didn't match pod anti-affinity rules",)
AVOIDED = ("node(s) didn't satisfy existing pods anti-affinity rules",)
HOSTNAME = "kubernetes.io/hostname"


def a_term(app: str = "web", key: str = HOSTNAME, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def with_terms(pod: dict[str, Any], kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    pod["spec"].setdefault("affinity", {})[kind] = required
    return pod


def a_pod_near(*terms: dict[str, Any], **labels: str) -> dict[str, Any]:
    return with_terms(a_pod(labels=labels), "podAffinity", *terms)


def a_pod_away_from(*terms: dict[str, Any], **labels: str) -> dict[str, Any]:
    return with_terms(a_pod(labels=labels), "podAntiAffinity", *terms)


def a_web_pod(name: str = "w", node: str = "n1", namespace: str = "default", **labels: str) -> dict[str, Any]:
    pod = a_pod(name, node=node, labels={"app": "web"} | labels)
    pod["metadata"]["namespace"] = namespace
    return pod


def a_namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def list_zoned_nodes(*zones: str) -> list[dict[str, Any]]:
    return [a_node(f"n{number}", labels={"zone": zone}) for number, zone in enumerate(zones, 1)]


def test_a_pod_goes_where_a_matching_pod_is() -> None:
    judgement = judge_pod(a_pod_near(a_term()), a_node("n1"), a_node("n2"), a_web_pod())
    assert judgement.fitting == ("n1",)
    assert get_reasons(judgement, "n2") == FAR
    assert get_codes(judgement) == {"n2": "UnschedulableAndUnresolvable"}


def test_a_place_is_every_node_with_the_same_label() -> None:
    judgement = judge_pod(a_pod_near(a_term(key="zone")), *list_zoned_nodes("a", "a", "b"), a_web_pod())
    assert judgement.fitting == ("n1", "n2")
    assert get_reasons(judgement, "n3") == FAR


def test_a_node_without_the_label_is_not_a_place() -> None:
    nodes = [*list_zoned_nodes("a"), a_node("n2")]
    assert get_reasons(judge_pod(a_pod_near(a_term(key="zone")), *nodes, a_web_pod()), "n2") == FAR
    # The pod on n2 is in no zone, so that it matches nobody.
    assert get_reasons(judge_pod(a_pod_near(a_term(key="zone")), *nodes, a_web_pod(node="n2")), "n1") == FAR


def test_one_pod_has_to_match_all_terms() -> None:
    terms = (a_term("web"), {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"tier": "1"}}})
    apart = [a_web_pod("a"), a_pod("b", node="n1", labels={"tier": "1"})]
    assert get_reasons(judge_pod(a_pod_near(*terms), a_node(), *apart)) == FAR
    assert get_reasons(judge_pod(a_pod_near(*terms), a_node(), a_web_pod("a", tier="1"))) == ()


def test_the_first_pod_of_a_group_that_attracts_itself_goes_anywhere() -> None:
    assert get_reasons(judge_pod(a_pod_near(a_term(), app="web"), a_node())) == ()
    assert get_reasons(judge_pod(a_pod_near(a_term(), app="db"), a_node())) == FAR


def test_the_first_pod_of_a_group_needs_a_node_with_the_label() -> None:
    judgement = judge_pod(a_pod_near(a_term(key="zone"), app="web"), a_node("n1"), a_node("n2", labels={"zone": "a"}))
    assert get_reasons(judgement) == FAR
    assert judgement.fitting == ("n2",)


def test_the_second_pod_of_a_group_goes_to_the_first() -> None:
    judgement = judge_pod(a_pod_near(a_term(), app="web"), a_node("n1"), a_node("n2"), a_web_pod())
    assert judgement.fitting == ("n1",)


def test_a_pod_keeps_away_from_matching_pods() -> None:
    judgement = judge_pod(a_pod_away_from(a_term()), a_node("n1"), a_node("n2"), a_web_pod())
    assert get_reasons(judgement) == NEAR
    assert get_codes(judgement) == {"n1": "Unschedulable"}
    assert judgement.fitting == ("n2",)


def test_a_node_without_the_label_is_away_from_everything() -> None:
    assert get_reasons(judge_pod(a_pod_away_from(a_term(key="zone")), a_node(), a_web_pod())) == ()


def test_any_anti_affinity_term_repels() -> None:
    assert get_reasons(judge_pod(a_pod_away_from(a_term("other"), a_term("web")), a_node(), a_web_pod())) == NEAR


def test_pods_on_nodes_keep_others_away() -> None:
    placed = with_terms(a_pod("placed", node="n1"), "podAntiAffinity", a_term(key="zone"))
    nodes = list_zoned_nodes("a", "a", "b")
    judgement = judge_pod(a_pod(labels={"app": "web"}), *nodes, placed)
    assert get_reasons(judgement, "n2") == AVOIDED
    assert get_codes(judgement) == {"n1": "Unschedulable", "n2": "Unschedulable"}
    assert judgement.fitting == ("n3",)
    assert "InterPodAffinity" in judge_pod(a_pod(labels={"app": "db"}), *nodes, placed).skipped


def test_own_terms_are_checked_before_those_of_other_pods() -> None:
    placed = with_terms(a_web_pod("placed"), "podAntiAffinity", a_term())
    assert get_reasons(judge_pod(a_pod_away_from(a_term(), app="web"), a_node(), placed)) == NEAR
    both = with_terms(a_pod_away_from(a_term(), app="web"), "podAffinity", a_term("none"))
    assert get_reasons(judge_pod(both, a_node(), placed)) == FAR


def test_a_term_looks_only_into_its_own_namespace() -> None:
    foreign = a_web_pod(namespace="other")
    assert get_reasons(judge_pod(a_pod_near(a_term()), a_node(), foreign)) == FAR
    assert get_reasons(judge_pod(a_pod_near(a_term(namespaces=["other"])), a_node(), foreign)) == ()
    assert get_reasons(judge_pod(a_pod_near(a_term(namespaces=["other"])), a_node(), a_web_pod())) == FAR


def test_a_namespace_selector_adds_the_namespaces_that_it_selects() -> None:
    term = a_term(namespaces=["third"], namespaceSelector={"matchLabels": {"team": "a"}})
    spaces = [a_namespace("other", team="a"), a_namespace("third"), a_namespace("default", team="b")]
    for namespace, reason in (("other", ()), ("third", ()), ("default", FAR)):
        judgement = judge_pod(a_pod_near(term), a_node(), a_web_pod(namespace=namespace), *spaces)
        assert get_reasons(judgement) == reason


def test_an_empty_namespace_selector_selects_all_namespaces() -> None:
    assert (
        get_reasons(judge_pod(a_pod_near(a_term(namespaceSelector={})), a_node(), a_web_pod(namespace="other"))) == ()
    )


def test_the_namespace_selector_of_a_placed_pod_is_held_against_the_pods_namespace() -> None:
    term = a_term(namespaceSelector={"matchLabels": {"team": "a"}})
    placed = with_terms(a_pod("placed", node="n1"), "podAntiAffinity", term)
    placed["metadata"]["namespace"] = "other"
    asking = a_pod(labels={"app": "web"})
    assert get_reasons(judge_pod(asking, a_node(), placed, a_namespace("default", team="a"))) == AVOIDED
    assert get_reasons(judge_pod(asking, a_node(), placed, a_namespace("default", team="b"))) == ()


def test_a_missing_selector_selects_nothing_and_an_empty_one_everything() -> None:
    missing, empty = {"topologyKey": HOSTNAME}, {"topologyKey": HOSTNAME, "labelSelector": {}}
    assert get_reasons(judge_pod(a_pod_away_from(missing), a_node(), a_web_pod())) == ()
    assert get_reasons(judge_pod(a_pod_away_from(empty), a_node(), a_web_pod())) == NEAR


def test_pods_being_deleted_still_count() -> None:
    leaving = a_web_pod()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert get_reasons(judge_pod(a_pod_away_from(a_term()), a_node(), leaving)) == NEAR


def test_preferred_terms_refuse_nothing() -> None:
    pod = a_pod()
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": a_term()}]}
    pod["spec"]["affinity"] = {"podAffinity": preferred}
    assert "InterPodAffinity" in judge_pod(pod, a_node()).skipped


@pytest.mark.parametrize("unread", [kinds.POD, kinds.NAMESPACE])
def test_terms_cannot_be_judged_without_the_objects_that_they_select(unread: str) -> None:
    term = a_term(namespaceSelector={"matchLabels": {"team": "a"}})
    judgement = judge_pod(a_pod_near(term), a_node(), a_web_pod(), unread=(unread,))
    assert [(unjudged.plugin, unjudged.kinds) for unjudged in judgement.unjudged] == [
        ("InterPodAffinity", frozenset({unread}))
    ]
    assert judgement.outcome is JudgedOutcome.OPEN


def test_namespaces_are_needed_only_where_a_term_selects_them() -> None:
    judgement = judge_pod(a_pod_near(a_term()), a_node(), a_web_pod(), unread=(kinds.NAMESPACE,))
    assert judgement.is_certain
    placed = with_terms(
        a_pod("placed", node="n1"), "podAntiAffinity", a_term(namespaceSelector={"matchLabels": {"team": "a"}})
    )
    assert not judge_pod(a_pod(), a_node(), placed, unread=(kinds.NAMESPACE,)).is_certain
