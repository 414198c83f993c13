"""Attempts as a whole: outcomes, messages, nominated pods, preemption, what unread objects leave open."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.filters.cycle import NodeCheck, Prepared, SchedulingCycle
from engine.filters.judge import judge
from engine.filters.judgement import JudgedOutcome, Judgement
from engine.filters.release import parse_release
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict, compose_message, cut_event_note
from engine.snapshot import kinds
from engine.snapshot.fields import RejectedObject
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.reading import read_snapshot
from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.judged import get_reasons, judge_pod

NOT_HELPFUL = "Preemption is not helpful for scheduling"


def with_priority(pod: dict[str, Any], priority: int, **spec: Any) -> dict[str, Any]:
    pod["spec"] |= {"priority": priority, **spec}
    return pod


def with_nomination(pod: dict[str, Any], node: str = "n1") -> dict[str, Any]:
    pod["status"]["nominatedNodeName"] = node
    return pod


def with_deletion(pod: dict[str, Any]) -> dict[str, Any]:
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def test_counts_are_sorted_as_texts() -> None:
    nodes = [a_node(f"a{number}", taints=[a_taint("x")]) for number in range(10)]
    judgement = judge_pod(a_pod(cpu="9"), *nodes, a_node("b1"), a_node("b2"))
    assert judgement.outcome is JudgedOutcome.UNFIT
    assert judgement.message == (
        "0/12 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to "
        f"deallocate, preemption: 0/12 nodes are available: 12 {NOT_HELPFUL}."
    )


def test_a_node_counts_for_each_of_its_reasons() -> None:
    judgement = judge_pod(a_pod(cpu="9", memory="17Gi"), a_node())
    assert judgement.counts == {"Insufficient cpu": 1, "Insufficient memory": 1}


def test_releases_before_1_34_write_only_preemptions_part_behind_the_counts() -> None:
    judgement = judge_pod(a_pod(cpu="9"), a_node(), release=parse_release("1.33"))
    assert judgement.message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims "
        "found for incoming pod."
    )


def test_a_pod_that_fits_has_no_message() -> None:
    judgement = judge_pod(a_pod(cpu="1"), a_node("n1"), a_node("n2", taints=[a_taint("x")]))
    assert judgement.outcome is JudgedOutcome.FITS
    assert judgement.fitting == ("n1",)
    assert judgement.message == ""
    assert judgement.request == {"cpu": 1000}


def test_without_nodes_the_attempt_fails() -> None:
    judgement = judge_pod(a_pod())
    assert judgement.outcome is JudgedOutcome.ERROR
    assert judgement.message == "no nodes available to schedule pods"
    assert judgement.error_messages == ("no nodes available to schedule pods",)


def test_gates_keep_a_pod_from_the_queue() -> None:
    pod = a_pod(cpu="9")
    pod["spec"]["schedulingGates"] = [{"name": "a.com/x"}, {"name": "b.com/y"}]
    judgement = judge_pod(pod, a_node())
    assert judgement.outcome is JudgedOutcome.GATED
    assert judgement.pre_enqueue == (
        PluginRefusal("SchedulingGates", StatusCode.UNRESOLVABLE, ("waiting for scheduling gates: [a.com/x b.com/y]",)),
    )
    assert get_reasons(judgement) == ("Insufficient cpu",)
    assert judgement.message == ""


def test_a_pod_being_deleted_is_skipped() -> None:
    pod = with_deletion(a_pod())
    pod["spec"]["schedulingGates"] = [{"name": "x"}]
    assert judge_pod(pod, a_node()).outcome is JudgedOutcome.SKIPPED


@pytest.mark.parametrize(
    ("mine", "theirs", "reason"),
    [(5, 5, ("Insufficient cpu",)), (5, 6, ("Insufficient cpu",)), (5, 4, ())],
)
def test_a_nominated_pod_of_at_least_the_same_priority_holds_its_request(
    mine: int, theirs: int, reason: tuple[str, ...]
) -> None:
    waiting = with_priority(with_nomination(a_pod("waiting", cpu="8")), theirs)
    judgement = judge_pod(with_priority(a_pod(cpu="1"), mine), a_node(), waiting)
    assert get_reasons(judgement) == reason


def test_a_pods_own_nomination_and_that_of_another_scheduler_do_not_count() -> None:
    pod = with_nomination(a_pod(cpu="8"))
    assert get_reasons(judge_pod(pod, a_node(), pod)) == ()
    other = with_nomination(a_pod("other", cpu="8"))
    other["spec"]["schedulerName"] = "volcano"
    assert get_reasons(judge_pod(a_pod(cpu="8"), a_node(), other)) == ()


def test_a_node_has_to_fit_without_its_nominated_pods_as_well() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    pod = a_pod()
    pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    waiting = with_nomination(a_pod("waiting", labels={"app": "web"}))
    assert get_reasons(judge_pod(pod, a_node(), waiting)) == ("node(s) didn't match pod affinity rules",)
    assert get_reasons(judge_pod(pod, a_node(), waiting, a_pod("w", node="n1", labels={"app": "web"}))) == ()


def test_a_nominated_pod_counts_for_spread_and_anti_affinity() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    waiting = with_nomination(a_pod("waiting", labels={"app": "web"}))
    pod = a_pod()
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert get_reasons(judge_pod(pod, a_node(), waiting)) == ("node(s) didn't match pod anti-affinity rules",)
    pod = a_pod(labels={"app": "web"})
    pod["spec"]["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    judgement = judge_pod(pod, a_node("n1"), a_node("n2"), waiting)
    assert get_reasons(judgement) == ("node(s) didn't match pod topology spread constraints",)
    assert judgement.fitting == ("n2",)


def test_preemption_ends_pods_of_lower_priority() -> None:
    judgement = judge_pod(with_priority(a_pod(cpu="8"), 5), a_node(), a_pod("low", node="n1", cpu="1"))
    assert judgement.preemption_node == "n1"
    assert judgement.outcome is JudgedOutcome.UNFIT
    assert judgement.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_preemption_needs_pods_of_lower_priority() -> None:
    taken = with_priority(a_pod("same", node="n1", cpu="1"), 5)
    judgement = judge_pod(with_priority(a_pod(cpu="8"), 5), a_node(), taken)
    assert judgement.preemption_node is None
    assert judgement.message.endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_preemption_names_the_reasons_that_remain() -> None:
    pods = [a_pod("low", node="n1", cpu="1"), with_priority(a_pod("high", node="n1", cpu="1"), 9)]
    judgement = judge_pod(with_priority(a_pod(cpu="8"), 5), a_node("n1"), a_node("n2", taints=[a_taint("x")]), *pods)
    assert judgement.message.endswith(f"preemption: 0/2 nodes are available: 1 Insufficient cpu, 1 {NOT_HELPFUL}.")


def test_preemption_counts_the_pods_that_are_gone_from_spread_and_affinity() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    low = a_pod("low", node="n1", labels={"app": "web"})
    pod = with_priority(a_pod(), 5)
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert judge_pod(pod, a_node(), low).preemption_node == "n1"
    pod = with_priority(a_pod(labels={"app": "web"}), 5)
    pod["spec"]["topologySpreadConstraints"] = [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    assert judge_pod(pod, a_node("n1"), a_node("n2", cpu="0", pods="0"), low).preemption_node == "n1"


def test_a_pod_may_forgo_preemption() -> None:
    pod = with_priority(a_pod(cpu="8"), 5, preemptionPolicy="Never")
    judgement = judge_pod(pod, a_node(), a_pod("low", node="n1", cpu="1"))
    assert judgement.preemption_node is None
    assert judgement.message.endswith(
        ". no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


def a_victim(reason: str = "PreemptionByScheduler") -> dict[str, Any]:
    victim = with_deletion(a_pod("victim", node="n1", cpu="8"))
    victim["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
    return victim


def test_a_pod_waits_while_its_victims_leave_the_nominated_node() -> None:
    pod = with_nomination(with_priority(a_pod(cpu="1"), 5))
    assert judge_pod(pod, a_node(), a_victim()).message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert judge_pod(pod, a_node(), a_victim("EvictionByEvictionAPI")).preemption_node == "n1"
    hopeless = a_node(taints=[a_taint("x")])
    assert judge_pod(pod, hopeless, a_victim()).message.endswith(f"1 {NOT_HELPFUL}.")


def test_a_long_message_is_cut_to_1024_bytes_for_the_event() -> None:
    assert cut_event_note("x" * 1024) == "x" * 1024
    assert cut_event_note("x" * 1025) == "x" * 1020 + " ..."
    assert cut_event_note("x" * 1019 + "é" * 10) == "x" * 1019 + " ..."


def test_a_message_without_reasons_is_only_its_beginning() -> None:
    assert compose_message(0, {}) == "0/0 nodes are available:"
    assert compose_message(1, {"x": 1}, prefilter="why") == "0/1 nodes are available: why."


@given(st.dictionaries(st.text("ab", min_size=1), st.integers(1, 20), max_size=5))
def test_a_message_holds_every_count_once(counts: dict[str, int]) -> None:
    message = compose_message(30, counts, post_filter="tail")
    assert message.endswith(" tail")
    for reason, count in counts.items():
        assert f" {count} {reason}" in message


def test_unread_nodes_leave_a_refusal_open() -> None:
    assert judge_pod(a_pod(cpu="9"), a_node(), unread=(kinds.NODE,)).outcome is JudgedOutcome.OPEN
    judgement = judge_pod(a_pod(), unread=(kinds.NODE,))
    assert judgement.outcome is JudgedOutcome.OPEN
    assert judgement.unjudged[0] == Unjudged("", frozenset({kinds.NODE}))


def test_a_refusal_is_certain_although_a_plugin_is_open() -> None:
    judgement = judge_pod(a_pod(cpu="9"), a_node(), unread=(kinds.POD,))
    assert judgement.outcome is JudgedOutcome.UNFIT
    assert not judgement.is_certain
    assert judgement.message == ""


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("tolerations", {}, "spec.tolerations is a mapping of 0 entries, not a list"),
        ("nodeSelector", {"a": 1}, "spec.nodeSelector[a] is 1, not a string"),
        ("affinity", "x", "spec.affinity is 'x', not a mapping"),
        ("topologySpreadConstraints", [1], "spec.topologySpreadConstraints[0] is 1, not a mapping"),
        ("containers", [{"resources": {"requests": {"cpu": "x"}}}], "spec.containers[0].resources.requests[cpu] is"),
        ("schedulingGates", [{"name": 1}], "spec.schedulingGates[0].name is 1, not a string"),
        ("volumes", [{"persistentVolumeClaim": []}], "spec.volumes[0].persistentVolumeClaim is a list of 0 entries"),
    ],
)
def test_a_malformed_pod_is_named_with_field_and_cause(field: str, value: Any, sentence: str) -> None:
    pod = a_pod("broken")
    pod["spec"][field] = value
    rejected = judge(read_snapshot([a_node()]), pod)
    assert isinstance(rejected, RejectedObject)
    assert rejected.to_sentence().startswith(f"Pod default/broken: {sentence}")


@pytest.mark.parametrize("value", [None, 7, "pod", [1]])
def test_a_value_that_is_not_an_object_is_rejected(value: Any) -> None:
    assert isinstance(judge(read_snapshot([]), value), RejectedObject)


@dataclass(frozen=True, slots=True)
class EvenNodes(NodeCheck):
    """Refuses nodes by the parity of their names' last digit."""

    code: StatusCode

    def judge(self, node: NodeInfo) -> Verdict:
        is_even = int(node.name[-1]) % 2 == 0
        return PluginRefusal("DynamicResources", self.code, ("cannot allocate all claims",)) if is_even else None


@dataclass(frozen=True, slots=True)
class FakeClaims:
    """DynamicResources with prepared answers."""

    prepared: Prepared
    refusal: PluginRefusal | None = None

    def check_pre_enqueue(self, cycle: SchedulingCycle) -> PluginRefusal | None:
        return self.refusal

    def prepare(self, cycle: SchedulingCycle) -> Prepared:
        return self.prepared

    def describe_post_filter(self, cycle: SchedulingCycle, prepared: Prepared) -> str:
        return "still not schedulable"


def judge_with_claims(claims: FakeClaims, pod: dict[str, Any], *objects: dict[str, Any]) -> Judgement:
    judgement = judge(read_snapshot(objects), pod, devices=claims)
    assert isinstance(judgement, Judgement)
    return judgement


def test_claims_are_judged_after_resources_and_before_declared_features() -> None:
    claims = FakeClaims(EvenNodes(StatusCode.UNRESOLVABLE))
    judgement = judge_with_claims(claims, a_pod(cpu="1"), a_node("n2"), a_node("n4", cpu="0"), a_node("n6"))
    assert get_reasons(judgement, "n2") == ("cannot allocate all claims",)
    assert get_reasons(judgement, "n4") == ("Insufficient cpu",)
    assert judgement.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims. still not schedulable, preemption: "
        f"0/3 nodes are available: 3 {NOT_HELPFUL}."
    )


def test_an_error_on_one_node_fails_the_attempt_although_others_fit() -> None:
    judgement = judge_with_claims(FakeClaims(EvenNodes(StatusCode.ERROR)), a_pod(), a_node("n1"), a_node("n2"))
    assert judgement.outcome is JudgedOutcome.ERROR
    assert judgement.fitting == ("n1",)
    assert judgement.message == 'running "DynamicResources" filter plugin: cannot allocate all claims'
    assert judgement.error_messages == (judgement.message,)


def test_an_error_before_the_nodes_fails_the_attempt() -> None:
    claims = FakeClaims(PluginRefusal("DynamicResources", StatusCode.ERROR, ("boom",)))
    judgement = judge_with_claims(claims, a_pod(), a_node())
    assert judgement.outcome is JudgedOutcome.ERROR
    assert judgement.message == 'running PreFilter plugin "DynamicResources": boom'


def test_a_claims_refusal_before_the_nodes_has_its_text_behind_it() -> None:
    claims = FakeClaims(PluginRefusal("DynamicResources", StatusCode.UNRESOLVABLE, ("resourceclaim in use",)))
    judgement = judge_with_claims(claims, a_pod(), a_node())
    assert judgement.message == (
        "0/1 nodes are available: resourceclaim in use. still not schedulable, preemption: 0/1 nodes are available: "
        f"1 {NOT_HELPFUL}."
    )


def test_a_claim_that_does_not_exist_keeps_the_pod_from_the_queue() -> None:
    refusal = PluginRefusal("DynamicResources", StatusCode.UNRESOLVABLE, ("no claim",))
    judgement = judge_with_claims(FakeClaims(EvenNodes(StatusCode.UNRESOLVABLE), refusal), a_pod(), a_node("n1"))
    assert judgement.outcome is JudgedOutcome.GATED
    assert judgement.pre_enqueue == (refusal,)


def test_without_the_claims_plugin_pods_with_claims_are_left_open() -> None:
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    judgement = judge_pod(pod, a_node())
    assert judgement.outcome is JudgedOutcome.OPEN
    assert {unjudged.plugin for unjudged in judgement.unjudged} == {"DynamicResources"}
