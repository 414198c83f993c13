"""Words of autoscalers: what the texts of cluster-autoscaler and Karpenter mean, as their sources write them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.autoscalers import check_autoscaler
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.builders.layer_objects import an_event as an_object_event
from tests.support.builders.layer_objects import to_english

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
ADDS = "pod triggered scale-up: [{pool-x 2->3 (max: 9)}]"
HEAD = "pod didn't trigger scale-up: "
NOMINATED = "Pod should schedule on: nodeclaim/pool-a-7xk, node/ip-10-0-0-1"


def an_event(reason: str, note: str, minutes: float | None = 1, reporter: str = "cluster-autoscaler") -> Evidence:
    """An event about the pod, so many minutes ago."""
    time = None if minutes is None else NOW - timedelta(minutes=minutes)
    return Evidence("event", "e", time, reporter, words=f"{reason}: {note}")


def write_as_karpenter(reason: str, note: str, minutes: float = 1) -> Evidence:
    return an_event(reason, note, minutes, "karpenter")


def build_facts(*events: Evidence, objects: tuple[Json, ...] | None = None, **pod: Any) -> DiagnosisFacts:
    described = PodOnCluster(Evidence("pod", "lab/job-0"), created_at=NOW - timedelta(hours=1))._replace(**pod)
    collected = None if objects is None else collect_objects(objects)
    return DiagnosisFacts("default", "lab", "job-0", NOW, pod=described, events=list(events), objects=collected)


def explain(*events: Evidence, objects: tuple[Json, ...] | None = None) -> FoundObstacle:
    (step,) = check_autoscaler(build_facts(*events, objects=objects))
    (obstacle,) = step.obstacles
    assert step.question == "NodeIsComing"
    assert step.answer == ("yes" if obstacle.code == "AutoscalerAdds" else "no")
    return obstacle


def get_word(obstacle: FoundObstacle, name: str) -> str | int:
    return to_english(obstacle.words[name])


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (an_event("TriggeredScaleUp", ADDS), "AutoscalerAdds"),
        (write_as_karpenter("Nominated", NOMINATED), "AutoscalerAdds"),
        (an_event("TriggeredScaleUp", ADDS, minutes=15), "AutoscalerAdds"),
        (an_event("TriggeredScaleUp", ADDS, minutes=16), "AutoscalerLate"),
        (an_event("TriggeredScaleUp", ADDS, minutes=None), "AutoscalerAdds"),
        (an_event("FailedScaleUp", "error adding nodes"), "AutoscalerFailed"),
        (an_event("NotTriggerScaleUp", HEAD + "1 max node group size reached"), "AutoscalerCannot"),
        (write_as_karpenter("FailedScheduling", "Failed to schedule pod"), "AutoscalerCannot"),
    ],
)
def test_an_event_means_that_a_node_comes_is_late_or_cannot_come(event: Evidence, code: str) -> None:
    assert explain(event).code == code


@pytest.mark.parametrize(
    "event",
    [
        # Words of a scheduler, which are no autoscaler's.
        an_event("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.", reporter="default-scheduler"),
        an_event("Nominated", NOMINATED, reporter="default-scheduler"),
        an_event("Pulled", "image"),
    ],
)
def test_events_of_others_are_no_words_of_an_autoscaler(event: Evidence) -> None:
    assert list(check_autoscaler(build_facts(event))) == []
    # The next event counts.
    assert explain(event, an_event("TriggeredScaleUp", ADDS)).code == "AutoscalerAdds"


def test_the_latest_word_counts_and_none_about_a_pod_on_a_node() -> None:
    events = an_event("FailedScaleUp", "error"), an_event("TriggeredScaleUp", ADDS, minutes=5)
    assert explain(*events).code == "AutoscalerFailed"
    assert list(check_autoscaler(build_facts(*events, node="n1"))) == []


def test_groups_that_grow_are_named_with_their_sizes() -> None:
    note = "pod triggered scale-up: [{pool-x 2->3 (max: 9)} {pool-y 0->1}]"
    obstacle = explain(an_event("TriggeredScaleUp", note))
    assert get_word(obstacle, "groups") == "pool-x from 2 to 3 (at most 9), pool-y from 0 to 1"
    assert (get_word(obstacle, "at"), list(obstacle.clauses)) == ("08:29:00 UTC", ["at"])
    assert get_word(obstacle, "autoscaler") == "The cluster autoscaler"
    undated = explain(an_event("TriggeredScaleUp", note, minutes=None))
    assert (get_word(undated, "at"), list(undated.clauses)) == ("", [])
    late = explain(an_event("TriggeredScaleUp", note, minutes=20))
    assert get_word(late, "ago") == "20 min"


def test_karpenter_names_the_place_that_it_nominates() -> None:
    obstacle = explain(write_as_karpenter("Nominated", NOMINATED))
    assert get_word(obstacle, "groups") == "nodeclaim/pool-a-7xk, node/ip-10-0-0-1"
    assert get_word(obstacle, "autoscaler") == "Karpenter"
    other = explain(an_event("TriggeredScaleUp", "a node is on its way."))
    assert get_word(other, "groups") == "a node is on its way"


@pytest.mark.parametrize(
    ("reason", "phrase"),
    [
        ("1 max node group size reached", "1 is at the maximum size"),
        ("2 in backoff after failed scale-up", "2 are in backoff after a failed scale-up"),
        ("1 max cluster cpu, memory limit reached", "1 would exceed the cluster's limit of cpu, memory"),
        (
            "3 node(s) had untolerated taint {spot: true}",
            "3 have a taint that the pod does not tolerate {spot: true}",
        ),
        ("1 node(s) had taint {a: b}, that the pod didn't tolerate",
         "1 has a taint that the pod does not tolerate {a: b}"),
        ("1 node(s) had untolerated taint(s)", "1 has a taint that the pod does not tolerate"),
        (
            "1 node(s) didn't match Pod's node affinity/selector",
            "1 does not match the pod's node selector or affinity",
        ),
        ("2 Insufficient nvidia.com/gpu", "nodes of 2 have too little nvidia.com/gpu"),
        ("1 node(s) had volume node affinity conflict", "1 is where the pod's volume can't be used"),
    ],
)  # fmt: skip
def test_node_groups_are_counted_by_the_reason_that_excludes_them(reason: str, phrase: str) -> None:
    obstacle = explain(an_event("NotTriggerScaleUp", HEAD + reason))
    assert (get_word(obstacle, "reasons"), list(obstacle.clauses)) == (phrase, ["reasons"])
    several = explain(an_event("NotTriggerScaleUp", f"{HEAD}4 Insufficient cpu, {reason}"))
    assert get_word(several, "reasons") == f"nodes of 4 have too little cpu, {phrase}"


@pytest.mark.parametrize(
    "note", ["pod didn't trigger scale-up (it wouldn't fit if a new node is added)", "no reason at all", HEAD]
)
def test_a_text_without_counts_is_quoted(note: str) -> None:
    obstacle = explain(an_event("NotTriggerScaleUp", note))
    assert (get_word(obstacle, "reasons"), list(obstacle.clauses)) == ("", ["words"])


REFUSED = "can't be scheduled on MIG/zones/z/pool-a, predicate checking error: Insufficient cpu; predicateName=Fit"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([REFUSED], "pool-a (Insufficient cpu)"),
        (
            ["Pod can't be scheduled on pool-b, predicate failed: GeneralPredicates predicate mismatch, reason: full"],
            "pool-b (full)",
        ),
        (["Node group pool-c is not ready for scaleup - backoff"], "pool-c (backoff)"),
        (["cannot put job-0 on template-node-for-pool-d-123456789, reason: taints"], "pool-d (taints)"),
        # Each group with its latest reason; the order of the lines does not matter.
        ([REFUSED, REFUSED.replace("cpu", "memory")], "pool-a (Insufficient cpu)"),
        ([REFUSED, "Node group pool-c is not ready for scaleup - backoff"],
         "pool-c (backoff), pool-a (Insufficient cpu)"),
    ],
)  # fmt: skip
def test_groups_of_the_autoscalers_log_are_named_with_their_reasons(lines: list[str], text: str) -> None:
    events = [an_event("NotTriggerScaleUp", line, minutes) for minutes, line in enumerate(lines, 1)]
    obstacle = explain(*events)
    assert get_word(obstacle, "refused") == text
    assert list(obstacle.clauses) == ["refused"]
    counted = explain(an_event("NotTriggerScaleUp", HEAD + "1 Insufficient cpu", 0), *events)
    assert list(counted.clauses) == ["reasons", "refused"]


@pytest.mark.parametrize(
    "line",
    [
        "Pod lab/job-0 marked as unschedulable can be scheduled on node n7. Ignoring",
        "Pod lab.job-0 marked as unschedulable can be scheduled on n7 (based on simulation run)",
    ],
)
def test_an_autoscaler_whose_own_simulation_fits_the_pod_adds_no_node(line: str) -> None:
    obstacle = explain(an_event("NotTriggerScaleUp", line))
    assert (obstacle.code, get_word(obstacle, "node")) == ("AutoscalerSeesRoom", "n7")


def exclude_pool(name: str, reason: str) -> str:
    return f'incompatible with nodepool "{name}", daemonset overhead={{"pods":"3"}}, {reason}'


AMOUNT = "no instance type has enough resources"
LIMIT = "all available instance types exceed limits for nodepool"
TAINT = "did not tolerate taint (taint=spot:NoSchedule)"
LABEL = 'incompatible requirements, key "zone", zone In [a] not in zone In [b]'


@pytest.mark.parametrize(
    ("note", "text"),
    [
        (exclude_pool("a", AMOUNT), "no instance type of NodePool a has enough resources"),
        (exclude_pool("a", LIMIT), "NodePool a has reached its limits (`spec.limits`)"),
        (exclude_pool("a", TAINT), "the pod does not tolerate the taint spot:NoSchedule of NodePool a"),
        (
            exclude_pool("a", LABEL),
            "NodePool a does not offer the label that the pod's selector or affinity names: zone",
        ),
        # The nearest pool first: of one reason before two, and the lowest rank of obstacles.
        (
            f"{exclude_pool('a', LABEL)}; {exclude_pool('b', LIMIT)}",
            (
                "NodePool b has reached its limits (`spec.limits`), "
                "NodePool a does not offer the label that the pod's selector or affinity names: zone"
            ),
        ),
        # A part without a pool is one more reason of the pool before it.
        (
            f"{exclude_pool('a', AMOUNT)}; {TAINT}; {exclude_pool('b', LABEL)}",
            (
                "NodePool b does not offer the label that the pod's selector or affinity names: zone, no instance type "
                "of NodePool a has enough resources and the pod does not tolerate the taint spot:NoSchedule of "
                "NodePool a"
            ),
        ),
    ],
)
def test_karpenter_gives_its_reasons_by_pool_the_nearest_first(note: str, text: str) -> None:
    obstacle = explain(write_as_karpenter("FailedScheduling", f"Failed to schedule pod, {note}"))
    assert (get_word(obstacle, "reasons"), list(obstacle.clauses)) == (text, ["pools"])
    # The cluster autoscaler knows no pools.
    other = explain(an_event("NotTriggerScaleUp", note))
    assert "pools" not in other.clauses


@pytest.mark.parametrize(
    "note", [exclude_pool("a", "a reason of tomorrow"), AMOUNT, f"{exclude_pool('a', AMOUNT)}; tomorrow"]
)
def test_karpenters_unknown_reasons_are_quoted(note: str) -> None:
    obstacle = explain(write_as_karpenter("FailedScheduling", note))
    assert (get_word(obstacle, "words"), list(obstacle.clauses)) == (note, ["words"])


def a_claim_event(reason: str = "InsufficientCapacityError", kind: str = "Warning", name: str = "pool-a-7xk") -> Json:
    event = an_object_event(reason, "no p5.48xlarge in zone a", pod=name, kind="NodeClaim", reporter="karpenter")
    event["metadata"]["namespace"] = "default"
    event["regarding"]["namespace"] = "default"
    return {**event, "type": kind}


@pytest.mark.parametrize(
    ("objects", "code"),
    [
        ((a_claim_event(),), "NodeNotLaunched"),
        ((a_claim_event(kind="Normal"),), "AutoscalerAdds"),
        ((a_claim_event(name="pool-a-other"),), "AutoscalerAdds"),
        ((), "AutoscalerAdds"),
        (None, "AutoscalerAdds"),
    ],
)
def test_a_claim_whose_machine_the_cloud_refuses_brings_no_node(objects: tuple[Json, ...] | None, code: str) -> None:
    obstacle = explain(write_as_karpenter("Nominated", NOMINATED), objects=objects)
    assert obstacle.code == code
    if code == "NodeNotLaunched":
        assert (get_word(obstacle, "claim"), get_word(obstacle, "words")) == ("pool-a-7xk", "no p5.48xlarge in zone a")
        assert [evidence.record for evidence in obstacle.evidence] == ["e", "NodeClaim pool-a-7xk"]


def test_a_node_that_came_and_does_not_help_ends_the_wait() -> None:
    events = (
        an_event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", 1, "default-scheduler"),
        an_event("TriggeredScaleUp", ADDS, 5),
        an_event("FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu.", 9, "default-scheduler"),
    )
    obstacle = explain(*events)
    assert (obstacle.code, obstacle.words["before"], obstacle.words["after"]) == ("AutoscalerAdded", 2, 3)
    assert list(obstacle.clauses) == ["reasons"]
    assert get_word(obstacle, "reasons") == "3 of 3 nodes have too little cpu left"


@pytest.mark.parametrize(
    ("event", "steps"),
    [
        (an_event("NotTriggerScaleUp", HEAD + "1 max node group size reached"), ["maximum size of a group"]),
        (
            an_event("NotTriggerScaleUp", HEAD + "2 in backoff after failed scale-up"),
            ["tries a group in backoff again"],
        ),
        # The flags are those of the autoscaler's FAQ.
        (an_event("NotTriggerScaleUp", HEAD + "1 max cluster cpu, memory limit reached"), ["--cores-total"]),
        (
            an_event(
                "NotTriggerScaleUp",
                HEAD + "1 node(s) had untolerated taint {a: b}, 2 node(s) had untolerated taint {c: d}, "
                "1 node(s) didn't match Pod's node affinity/selector",
            ),
            ["give it a toleration", "nodeSelector"],
        ),
        (
            an_event("NotTriggerScaleUp", HEAD + "1 node(s) had volume node affinity conflict"),
            ["have a group with nodes there"],
        ),
        (an_event("NotTriggerScaleUp", HEAD + "2 Insufficient nvidia.com/gpu"), ["no more than one empty node"]),
        (an_event("NotTriggerScaleUp", HEAD + "1 of a reason of its own"), ["Correct the pod's selector, tolerations"]),
        (write_as_karpenter("FailedScheduling", "Failed to schedule pod"), ["Correct the pod's selector, tolerations"]),
        (
            write_as_karpenter(
                "FailedScheduling",
                'Failed to schedule pod, all available instance types exceed limits for nodepool: "a"; '
                'incompatible with nodepool "b", did not tolerate gpu=true:NoSchedule',
            ),
            ["`spec.limits`", "give it a toleration"],
        ),
    ],
)
def test_each_reason_has_its_step(event: Evidence, steps: list[str]) -> None:
    written = str(get_word(explain(event), "steps"))
    assert all(step in written for step in steps)
    assert written.count("give it a toleration") <= 1
