"""Places that were taken from a pod, by its conditions, its events and the objects of who took them.

Conditions and reasons are those of Kubernetes' documentation of disruptions (`DisruptionTarget`).
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.evictions import find_loss, find_loss_of_missing, find_winner_uid
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import collect_objects
from schemas.events import Condition
from schemas.json_types import Json
from tests.support.builders.events import a_summary
from tests.support.builders.layer_objects import to_english

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
TIME = datetime(2026, 11, 24, 8, 20, tzinfo=UTC)


def a_condition(
    kind: str, reason: str, message: str = "", status: str = "True", time: datetime | None = TIME
) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_at=time)


DISRUPTED = a_condition("DisruptionTarget", "PreemptionByScheduler", "default-scheduler: preempting to accommodate")


def an_event(reason: str, note: str, reporter: str = "default-scheduler", time: datetime | None = TIME) -> Evidence:
    return Evidence("event", "e", time, reporter, words=f"{reason}: {note}")


def find(
    *conditions: Condition, events: tuple[Evidence, ...] = (), objects: tuple[Json, ...] = (), **more: Any
) -> FoundObstacle | None:
    winner = more.pop("winner", None)
    plain = {"phase": "Failed", "node": "n1", "scheduler": "default-scheduler"} | more
    pod = PodOnCluster(Evidence("pod", "p"), conditions=conditions, **plain)
    collected = collect_objects(objects)
    facts = DiagnosisFacts("default", "ml", "p", NOW, pod=pod, events=events, objects=collected, winner=winner)
    return find_loss(facts, pod)


@pytest.mark.parametrize(
    ("phase", "is_being_deleted", "is_lost"),
    [("Failed", False, True), ("Running", True, True), ("Running", False, False), ("Pending", False, False),
     ("Succeeded", False, False), ("Succeeded", True, False)],
)  # fmt: skip
def test_only_a_pod_that_failed_or_is_being_deleted_lost_its_place(
    phase: str, is_being_deleted: bool, is_lost: bool
) -> None:
    assert bool(find(DISRUPTED, phase=phase, is_being_deleted=is_being_deleted)) is is_lost


@pytest.mark.parametrize(
    ("conditions", "events", "code"),
    [
        ([DISRUPTED], (), "Preempted"),
        ([a_condition("DisruptionTarget", "PreemptionByScheduler", status="False")], (), ""),
        ([a_condition("Preempted", "Preempted", "Preempted by ml/other on node n1")], (), "Preempted"),
        ([a_condition("DisruptionTarget", "EvictionByEvictionAPI")], (), "EvictedFromNode"),
        ([a_condition("DisruptionTarget", "DeletionByTaintManager")], (), "EvictedFromNode"),
        ([a_condition("DisruptionTarget", "SomethingNew")], (), "EvictedFromNode"),
        ([a_condition("Ready", "PreemptionByScheduler")], (), ""),
        ([], (an_event("Preempted", "Preempted by ml/other on node n2"),), "Preempted"),
        ([], (an_event("Killing", "Stopping container"),), ""),
        # A condition that is not true any more gives way to the observed event.
        ([a_condition("DisruptionTarget", "EvictionByEvictionAPI", status="False"),
          a_condition("Preempted", "Preempted")], (), "Preempted"),
        ([], (), ""),
    ],
)  # fmt: skip
def test_a_place_is_taken_by_a_scheduler_or_by_an_eviction(
    conditions: list[Condition], events: tuple[Evidence, ...], code: str
) -> None:
    obstacle = find(*conditions, events=events)
    assert (obstacle.code if obstacle else "") == code


def a_pod(name: str, uid: str, priority: Any = None) -> Json:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ml", "name": name, "uid": uid},
        "spec": {"priority": priority},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("note", "objects", "recorded", "winner", "clauses"),
    [
        ("Preempted by pod u-1 on node n1", (a_pod("x", "u-0"), a_pod("big", "u-1", 10)), None, "ml/big",
         ["winner", "priorities", "at"]),
        ("Preempted by ml/big on node n1", (a_pod("big", "u-1", 10),), None, "ml/big", ["winner", "priorities", "at"]),
        ("Preempted by pod u-1 on node n1", (a_pod("big", "u-1"),), None, "ml/big", ["winner", "at"]),
        ("Preempted by pod u-1 on node n1", (), ("ml/big", 7), "ml/big", ["winner", "priorities", "at"]),
        ("Preempted by ml/big on node n1", (), None, "ml/big", ["winner", "at"]),
        # A UID without its pod names nobody.
        ("Preempted by pod u-1 on node n1", (a_pod("x", "u-0"),), None, "", ["at"]),
        ("Preempted by a pod on node n1", (a_pod("x", "u-0"),), ("ml/big", 7), "", ["at"]),
    ],
)  # fmt: skip
def test_the_winner_is_named_with_its_priority_where_its_pod_is_known(
    note: str, objects: tuple[Json, ...], recorded: tuple[str, int | None] | None, winner: str, clauses: list[str]
) -> None:
    event = an_event("Preempted", note)
    obstacle = find(events=(event,), objects=objects, winner=recorded, spec={"priority": 0})
    assert obstacle
    assert (obstacle.words["winner"], list(obstacle.clauses)) == (winner, clauses)
    if "priorities" in clauses:
        assert (obstacle.words["priority"], obstacle.words["winner_priority"]) == (0, 7 if recorded else 10)
    # Without the pod's own priority there is nothing to compare.
    without = find(events=(event,), objects=objects, winner=recorded)
    assert without
    assert "priorities" not in without.clauses


@pytest.mark.parametrize(
    ("node", "note", "expected"),
    [("n1", "Preempted by ml/x on node n2", "n1"), ("", "Preempted by ml/x on node n2", "n2"), ("", "Preempted", "?")],
)
def test_the_node_is_that_of_the_pod_or_of_the_words(node: str, note: str, expected: str) -> None:
    obstacle = find(events=(an_event("Preempted", note),), node=node)
    assert obstacle
    assert (obstacle.words["node"], list(obstacle.nodes)) == (expected, [node] if node else [])


def test_the_time_is_that_of_the_first_source_that_has_one() -> None:
    late = datetime(2026, 11, 24, 8, 25, tzinfo=UTC)
    condition = DISRUPTED.model_copy(update={"last_transition_at": late})
    for event_time, expected in ((TIME, "08:20:00 UTC"), (None, "08:25:00 UTC")):
        obstacle = find(condition, events=(an_event("Preempted", "Preempted by ml/x", time=event_time),))
        assert obstacle
        assert obstacle.words["at"] == expected
    untimed = find(a_condition("DisruptionTarget", "EvictionByEvictionAPI", time=None))
    assert untimed
    assert (untimed.words["at"], untimed.clauses) == ("", [])


@pytest.mark.parametrize(
    ("conditions", "uid"),
    [
        ([a_condition("Preempted", "Preempted", "Preempted by pod u-1 on node n1")], "u-1"),
        ([a_condition("Preempted", "Preempted", "Preempted by a pod on node n1")], ""),
        ([a_condition("Preempted", "Preempted", "gone")], ""),
        ([DISRUPTED], ""),
    ],
)
def test_the_winners_uid_stands_in_a_recorded_event(conditions: list[Condition], uid: str) -> None:
    assert find_winner_uid(PodOnCluster(Evidence("pod", "p"), conditions=conditions)) == uid


def find_missing(
    *events: Evidence, pod: PodOnCluster | None = None, objects: tuple[Json, ...] = ()
) -> FoundObstacle | None:
    attempt = a_summary(["n1"], chosen="n1")
    return find_loss_of_missing(
        DiagnosisFacts("default", "ml", "p", NOW, attempt, pod=pod, events=events, objects=collect_objects(objects))
    )


def a_rule(name: str, effect: str) -> Json:
    return {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "DeviceTaintRule", "metadata": {"name": name},
            "spec": {"taint": {"effect": effect}}}  # fmt: skip


def test_a_missing_pod_was_preempted_or_evicted_by_its_last_events_or_its_last_state() -> None:
    preempted = find_missing(an_event("Preempted", "Preempted by ml/big on node n1", "volcano"))
    assert preempted
    assert (preempted.code, preempted.words["scheduler"], preempted.words["node"]) == ("Preempted", "volcano", "n1")
    last = PodOnCluster(Evidence("pod", "p"), node="n9", scheduler="kai-scheduler", conditions=[DISRUPTED])
    by_state = find_missing(pod=last)
    assert by_state
    assert (by_state.code, by_state.words["scheduler"], by_state.words["node"]) == ("Preempted", "kai-scheduler", "n9")
    assert by_state.words["again"] == preempted.words["again"]
    assert find_missing() is None
    assert find_missing(pod=PodOnCluster(Evidence("pod", "p"))) is None
    assert find_missing(an_event("Killing", "x")) is None


@pytest.mark.parametrize(
    ("reason", "objects", "words"),
    [
        ("TaintManagerEviction", (), "taint"),
        (
            "DeviceTaintManagerEviction",
            (a_rule("broken-a100", "NoExecute"), a_rule("note", "NoSchedule")),
            "broken-a100",
        ),
        ("DeviceTaintManagerEviction", (a_rule("note", "NoSchedule"),), "device"),
    ],
)
def test_an_eviction_for_a_taint_names_its_rule(reason: str, objects: tuple[Json, ...], words: str) -> None:
    obstacle = find_missing(an_event(reason, "Marking for deletion"), objects=objects)
    assert obstacle
    cause = str(to_english(obstacle.words["cause"]))
    assert (obstacle.code, obstacle.words["node"], list(obstacle.clauses)) == ("EvictedFromNode", "n1", ["at"])
    assert words in cause
    assert ("broken-a100" in cause) is (words == "broken-a100")
    assert "note" not in cause
