"""Filters that look only at the node: cordon, name, taints, affinity, declared features."""

from typing import Any

import pytest

from engine.filters.judgement import JudgedOutcome
from engine.filters.release import LATEST, SchedulerRelease, parse_release
from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.judged import get_codes, get_reasons, judge_pod

TAINTED = ("node(s) had untolerated taint(s)",)
UNMATCHED = ("node(s) didn't match Pod's node affinity/selector",)
UNRESOLVABLE = {"n1": "UnschedulableAndUnresolvable"}


def a_cordoned_node() -> dict[str, Any]:
    node = a_node()
    node["spec"]["unschedulable"] = True
    return node


def with_tolerations(*tolerations: dict[str, Any]) -> dict[str, Any]:
    pod = a_pod()
    pod["spec"]["tolerations"] = list(tolerations)
    return pod


def with_affinity(*terms: dict[str, Any], selector: dict[str, str] | None = None) -> dict[str, Any]:
    pod = a_pod()
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    if selector:
        pod["spec"]["nodeSelector"] = selector
    return pod


def a_term(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def a_name_term(*values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}


def test_a_cordoned_node_is_refused() -> None:
    judgement = judge_pod(a_pod(), a_cordoned_node())
    assert get_reasons(judgement) == ("node(s) were unschedulable",)
    assert judgement.refused["n1"].plugin == "NodeUnschedulable"
    assert get_codes(judgement) == UNRESOLVABLE


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": ""},
        {"operator": "Exists"},
    ],
)
def test_a_tolerated_cordon_does_not_refuse(toleration: dict[str, Any]) -> None:
    assert get_reasons(judge_pod(with_tolerations(toleration), a_cordoned_node())) == ()


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": "true"},
        {"key": "other", "operator": "Exists"},
    ],
)
def test_another_toleration_does_not_cover_the_cordon(toleration: dict[str, Any]) -> None:
    assert get_reasons(judge_pod(with_tolerations(toleration), a_cordoned_node())) == ("node(s) were unschedulable",)


def test_a_pod_that_names_a_node_fits_no_other() -> None:
    judgement = judge_pod(a_pod(node="n1"), a_node("n1"), a_node("n2"))
    assert get_reasons(judgement, "n2") == ("node(s) didn't match the requested node name",)
    assert judgement.fitting == ("n1",)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_an_untolerated_taint_refuses_without_its_name(effect: str) -> None:
    judgement = judge_pod(a_pod(), a_node(taints=[a_taint("gpu", "a", effect)]))
    assert get_reasons(judgement) == TAINTED
    assert get_codes(judgement) == UNRESOLVABLE


def test_a_preference_does_not_refuse() -> None:
    assert get_reasons(judge_pod(a_pod(), a_node(taints=[a_taint("gpu", "a", "PreferNoSchedule")]))) == ()


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "a"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "b"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "value": "b"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Exists", "tolerationSeconds": 0}, True),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Like", "value": "a"}, False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: dict[str, Any], *, tolerates: bool) -> None:
    judgement = judge_pod(with_tolerations(toleration), a_node(taints=[a_taint("gpu", "a")]))
    assert get_reasons(judgement) == (() if tolerates else TAINTED)


def test_every_taint_has_to_be_tolerated() -> None:
    pod = with_tolerations({"key": "a", "operator": "Exists"})
    assert get_reasons(judge_pod(pod, a_node(taints=[a_taint("a"), a_taint("b")]))) == TAINTED


@pytest.mark.parametrize(
    ("operator", "bound", "value", "tolerates"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Lt", "5", "-7", True),
        ("Gt", "5", "x", False),
        ("Gt", "x", "6", False),
        ("Gt", "5", "06", False),
        ("Gt", "5", "+6", False),
        ("Lt", "99999999999999999999", "6", False),
        ("Gt", "5", "99999999999999999999", False),
    ],
)
def test_tolerations_compare_numbers_where_the_gate_is_on(
    operator: str, bound: str, value: str, *, tolerates: bool
) -> None:
    pod = with_tolerations({"key": "level", "operator": operator, "value": bound})
    node = a_node(taints=[a_taint("level", value)])
    gated = SchedulerRelease(gates={"TaintTolerationComparisonOperators": True})
    assert get_reasons(judge_pod(pod, node, release=gated)) == (() if tolerates else TAINTED)
    assert get_reasons(judge_pod(pod, node)) == TAINTED


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("v1.34.1", "node(s) had untolerated taint {gpu: a}"),
        ("v1.34.2", TAINTED[0]),
        ("1.34", TAINTED[0]),
        ("v1.33.4-eks-1a2b", "node(s) had untolerated taint {gpu: a}"),
        ("v1.36.0", TAINTED[0]),
        ("unknown", TAINTED[0]),
    ],
)
def test_releases_before_1_34_2_name_the_taint(version: str, reason: str) -> None:
    judgement = judge_pod(a_pod(), a_node(taints=[a_taint("gpu", "a")]), release=parse_release(version))
    assert get_reasons(judgement) == (reason,)


def test_a_node_selector_needs_every_label() -> None:
    pod = a_pod()
    pod["spec"]["nodeSelector"] = {"a": "1", "b": "2"}
    judgement = judge_pod(pod, a_node("n1", labels={"a": "1"}), a_node("n2", labels={"a": "1", "b": "2"}))
    assert get_reasons(judgement) == UNMATCHED
    assert judgement.fitting == ("n2",)
    assert get_codes(judgement) == UNRESOLVABLE


@pytest.mark.parametrize(
    ("operator", "values", "label", "matches"),
    [
        ("In", ("a", "b"), "b", True),
        ("In", ("a",), "b", False),
        ("In", ("a",), None, False),
        ("NotIn", ("a",), "b", True),
        ("NotIn", ("a",), "a", False),
        ("NotIn", ("a",), None, True),
        ("Exists", (), "a", True),
        ("Exists", (), None, False),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), "a", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Gt", ("5",), "x", False),
        ("Gt", ("5",), None, False),
        ("Lt", ("5",), "4", True),
        ("Lt", ("5",), "5", False),
        ("Lt", ("x",), "4", False),
        ("Like", ("a",), "a", False),
        ("In", (), "a", False),
    ],
)
def test_an_expression_matches_a_label(
    operator: str, values: tuple[str, ...], label: str | None, *, matches: bool
) -> None:
    node = a_node(labels={} if label is None else {"x": label})
    assert get_reasons(judge_pod(with_affinity(a_term("x", operator, *values)), node)) == (() if matches else UNMATCHED)


def test_one_of_the_terms_and_the_selector_have_to_match() -> None:
    terms = (a_term("x", "In", "1"), a_term("y", "In", "2"))
    assert get_reasons(judge_pod(with_affinity(*terms), a_node(labels={"y": "2"}))) == ()
    assert get_reasons(judge_pod(with_affinity(*terms, selector={"z": "3"}), a_node(labels={"y": "2"}))) == UNMATCHED
    assert get_reasons(judge_pod(with_affinity(*terms, selector={"z": "3"}), a_node(labels={"y": "2", "z": "3"}))) == ()


def test_expressions_and_fields_of_a_term_both_have_to_match() -> None:
    term = a_term("x", "In", "1") | a_name_term("n1")
    judgement = judge_pod(with_affinity(term), a_node("n1", labels={"x": "2"}), a_node("n2", labels={"x": "1"}))
    assert get_reasons(judgement) == UNMATCHED
    assert judgement.outside == ("n2",)


@pytest.mark.parametrize("terms", [(), ({},)])
def test_an_affinity_without_a_term_matches_no_node(terms: tuple[dict[str, Any], ...]) -> None:
    assert get_reasons(judge_pod(with_affinity(*terms), a_node())) == UNMATCHED


def test_terms_that_all_name_nodes_leave_other_nodes_out() -> None:
    pod = with_affinity(a_name_term("n2"), a_name_term("ghost"))
    judgement = judge_pod(pod, a_node("n1"), a_node("n2", taints=[a_taint("a")]), a_node("n3"))
    assert judgement.node_names == frozenset({"n2", "ghost"})
    assert judgement.outside == ("n1", "n3")
    assert judgement.counts == {
        "node(s) didn't satisfy plugin(s) [NodeAffinity]": 2,
        "node(s) had untolerated taint(s)": 1,
    }


def test_a_set_of_ghosts_leaves_all_nodes_out() -> None:
    judgement = judge_pod(with_affinity(a_name_term("ghost")), a_node("n1"))
    assert judgement.outcome is JudgedOutcome.UNFIT
    assert judgement.message.startswith(
        "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate, "
    )


def test_a_term_without_a_name_lets_all_nodes_be_looked_at() -> None:
    pod = with_affinity(a_name_term("n2"), a_term("x", "Exists"))
    assert judge_pod(pod, a_node("n1"), a_node("n2")).node_names is None


def test_names_that_contradict_each_other_refuse_the_pod() -> None:
    term = {"matchFields": a_name_term("n1")["matchFields"] + a_name_term("n2")["matchFields"]}
    judgement = judge_pod(with_affinity(term), a_node("n1"))
    assert judgement.outcome is JudgedOutcome.PREFILTER
    assert judgement.message == "0/1 nodes are available: pod affinity terms conflict. not found"


def test_a_name_that_is_excluded_is_judged_node_by_node() -> None:
    judgement = judge_pod(with_affinity(a_name_term("n1", operator="NotIn")), a_node("n1"), a_node("n2"))
    assert judgement.node_names is None
    assert get_reasons(judgement) == UNMATCHED
    assert judgement.fitting == ("n2",)


def test_releases_up_to_1_30_count_nodes_left_out_otherwise() -> None:
    judgement = judge_pod(with_affinity(a_name_term("ghost")), a_node("n1"), release=parse_release("1.30"))
    assert judgement.counts == {"node is filtered out by the prefilter result": 1}


def a_pod_that_restarts_all(key: str) -> dict[str, Any]:
    pod = a_pod()
    pod["spec"].setdefault(key, [{"name": "first"}])[0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    return pod


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_a_node_has_to_declare_the_features_that_the_pod_needs(key: str) -> None:
    declared = a_node("n2")
    declared["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits", "Other"]
    only = a_node("n3")
    only["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    judgement = judge_pod(a_pod_that_restarts_all(key), a_node("n1"), declared, only)
    assert get_reasons(judgement) == ("node(s) didn't match Pod's required features",)
    assert judgement.refused["n1"].plugin == "NodeDeclaredFeatures"
    assert get_codes(judgement) == UNRESOLVABLE
    assert judgement.fitting == ("n2", "n3")


def test_releases_before_1_36_do_not_look_at_features() -> None:
    judgement = judge_pod(a_pod_that_restarts_all("containers"), a_node(), release=parse_release("1.35"))
    assert judgement.fitting == ("n1",)


@pytest.mark.parametrize(
    ("host_network", "host_users", "needs"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_user_namespaces_on_the_host_network_are_a_feature(
    *, host_network: bool, host_users: bool, needs: bool
) -> None:
    pod = a_pod()
    pod["spec"] |= {"hostNetwork": host_network, "hostUsers": host_users}
    assert bool(get_reasons(judge_pod(pod, a_node()))) is needs


def test_the_filters_refuse_in_the_order_of_kube_scheduler() -> None:
    pod = with_affinity(a_term("x", "Exists"))
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100"}}
    node = a_cordoned_node()
    node["spec"]["taints"] = [a_taint("a")]
    judgement = judge_pod(pod, node)
    assert get_reasons(judgement) == ("node(s) were unschedulable",)
    assert list(judgement.alone["n1"]) == ["NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit"]
    node["spec"]["unschedulable"] = False
    assert get_reasons(judge_pod(pod, node)) == TAINTED
    node["spec"]["taints"] = []
    assert get_reasons(judge_pod(pod, node)) == UNMATCHED


def test_plugins_with_nothing_to_check_are_skipped() -> None:
    assert judge_pod(a_pod(), a_node(), release=LATEST).skipped == {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
