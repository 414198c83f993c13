"""PodTopologySpread: rules of kube-scheduler 1.36 about uneven domains."""

from typing import Any

import pytest

from engine.filters.judgement import JudgedOutcome
from engine.snapshot import kinds
from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.judged import get_codes, get_reasons, judge_pod

UNEVEN = ("node(s) didn't match pod topology spread constraints",)
MISSING = ("node(s) didn't match pod topology spread constraints (missing required label)",)


def a_constraint(**fields: Any) -> dict[str, Any]:
    return {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **fields,
    }


def spread(*constraints: dict[str, Any], **labels: str) -> dict[str, Any]:
    pod = a_pod(labels={"app": "web"} | labels)
    pod["spec"]["topologySpreadConstraints"] = list(constraints)
    return pod


def list_zoned_nodes(*zones: str) -> list[dict[str, Any]]:
    return [a_node(f"n{number}", labels={"zone": zone}) for number, zone in enumerate(zones, 1)]


def list_web_pods(*nodes: str, **labels: str) -> list[dict[str, Any]]:
    return [a_pod(f"w{number}", node=node, labels={"app": "web"} | labels) for number, node in enumerate(nodes)]


def test_a_domain_with_more_pods_than_the_skew_allows_is_refused() -> None:
    judgement = judge_pod(spread(a_constraint()), *list_zoned_nodes("a", "b"), *list_web_pods("n1"))
    assert get_reasons(judgement) == UNEVEN
    assert get_codes(judgement) == {"n1": "Unschedulable"}
    assert judgement.fitting == ("n2",)


def test_the_skew_is_counted_from_the_emptiest_domain() -> None:
    pods = list_web_pods("n1", "n1", "n2")
    assert get_reasons(judge_pod(spread(a_constraint(maxSkew=2)), *list_zoned_nodes("a", "b"), *pods)) == ()
    assert get_reasons(judge_pod(spread(a_constraint(maxSkew=1)), *list_zoned_nodes("a", "b"), *pods)) == UNEVEN


def test_a_pod_that_does_not_match_itself_adds_nothing() -> None:
    judgement = judge_pod(spread(a_constraint(), app="other"), *list_zoned_nodes("a", "b"), *list_web_pods("n1"))
    assert judgement.fitting == ("n1", "n2")


def test_a_node_without_the_key_is_refused_for_good() -> None:
    judgement = judge_pod(spread(a_constraint()), a_node("n1"), a_node("n2", labels={"zone": "a"}))
    assert get_reasons(judgement) == MISSING
    assert get_codes(judgement) == {"n1": "UnschedulableAndUnresolvable"}


def test_a_soft_constraint_refuses_nothing() -> None:
    pod = spread(a_constraint(whenUnsatisfiable="ScheduleAnyway"))
    assert "PodTopologySpread" in judge_pod(pod, *list_zoned_nodes("a", "b"), *list_web_pods("n1")).skipped


def test_only_nodes_with_all_keys_count() -> None:
    # n2 has no rack, so that zone b with its two pods is no domain of either constraint.
    nodes = [a_node("n1", labels={"zone": "a", "rack": "r"}), a_node("n2", labels={"zone": "b"})]
    constraints = (a_constraint(maxSkew=2), a_constraint(topologyKey="rack", maxSkew=9))
    judgement = judge_pod(spread(*constraints), *nodes, *list_web_pods("n1", "n2", "n2"))
    assert judgement.fitting == ("n1",)


def test_nodes_outside_the_pods_affinity_count_only_where_the_policy_ignores_it() -> None:
    pod = spread(a_constraint())
    pod["spec"]["nodeSelector"] = {"zone": "a"}
    assert get_reasons(judge_pod(pod, *list_zoned_nodes("a", "b"), *list_web_pods("n1"))) == ()
    pod = spread(a_constraint(nodeAffinityPolicy="Ignore"))
    pod["spec"]["nodeSelector"] = {"zone": "a"}
    assert get_reasons(judge_pod(pod, *list_zoned_nodes("a", "b"), *list_web_pods("n1"))) == UNEVEN


def test_tainted_nodes_count_except_where_the_policy_honors_taints() -> None:
    nodes = [a_node("n1", labels={"zone": "a"}), a_node("n2", labels={"zone": "b"}, taints=[a_taint("x")])]
    assert get_reasons(judge_pod(spread(a_constraint()), *nodes, *list_web_pods("n1"))) == UNEVEN
    assert get_reasons(judge_pod(spread(a_constraint(nodeTaintsPolicy="Honor")), *nodes, *list_web_pods("n1"))) == ()


def test_with_fewer_domains_than_wanted_the_emptiest_counts_as_empty() -> None:
    pods = list_web_pods("n1", "n2")
    assert get_reasons(judge_pod(spread(a_constraint(minDomains=2)), *list_zoned_nodes("a", "b"), *pods)) == ()
    assert get_reasons(judge_pod(spread(a_constraint(minDomains=3)), *list_zoned_nodes("a", "b"), *pods)) == UNEVEN


def test_pods_of_other_namespaces_and_pods_being_deleted_do_not_count() -> None:
    foreign, leaving = list_web_pods("n1", "n1")
    foreign["metadata"]["namespace"] = "other"
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert get_reasons(judge_pod(spread(a_constraint()), *list_zoned_nodes("a", "b"), foreign, leaving)) == ()


def test_an_empty_selector_counts_no_pods_but_the_pod_itself() -> None:
    pods = list_web_pods("n1", "n1", "n1")
    assert get_reasons(judge_pod(spread(a_constraint(labelSelector={})), *list_zoned_nodes("a", "b"), *pods)) == ()
    assert (
        get_reasons(judge_pod(spread(a_constraint(labelSelector={}, maxSkew=0)), *list_zoned_nodes("a", "b"), *pods))
        == UNEVEN
    )


def test_a_missing_selector_matches_nothing_even_with_label_keys() -> None:
    constraint = a_constraint(maxSkew=0, matchLabelKeys=["app"])
    del constraint["labelSelector"]
    assert get_reasons(judge_pod(spread(constraint), *list_zoned_nodes("a", "b"), *list_web_pods("n1"))) == ()


def test_label_keys_narrow_the_selector_to_the_pods_own_values() -> None:
    constraint = a_constraint(matchLabelKeys=["version", "absent"])
    nodes, others = list_zoned_nodes("a", "b"), list_web_pods("n1", version="1")
    assert get_reasons(judge_pod(spread(constraint, version="1"), *nodes, *others)) == UNEVEN
    assert get_reasons(judge_pod(spread(constraint, version="2"), *nodes, *others)) == ()


def test_a_domain_that_does_not_count_is_empty() -> None:
    # The selector of the pod leaves zone b out; its pods are not counted, so that n2 passes this filter.
    pod = spread(a_constraint())
    pod["spec"]["nodeSelector"] = {"zone": "a"}
    judgement = judge_pod(pod, *list_zoned_nodes("a", "b"), *list_web_pods("n2", "n2", "n2"))
    assert "PodTopologySpread" not in judgement.alone.get("n2", {})


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_constraint_that_fails_gives_the_reason(order: int) -> None:
    constraints = [a_constraint(maxSkew=0), a_constraint(topologyKey="rack")][::order]
    assert get_reasons(judge_pod(spread(*constraints), *list_zoned_nodes("a"))) == (UNEVEN, MISSING)[::order][0]


def test_domains_cannot_be_counted_without_the_pods() -> None:
    judgement = judge_pod(spread(a_constraint()), *list_zoned_nodes("a"), unread=(kinds.POD,))
    assert "PodTopologySpread" in {unjudged.plugin for unjudged in judgement.unjudged}
    assert judgement.outcome is JudgedOutcome.OPEN
