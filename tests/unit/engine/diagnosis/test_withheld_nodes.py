"""Nodes that our scheduler leaves to another one: who has them and whom to ask, not that their devices are lost."""

from datetime import UTC, datetime

from engine.diagnosis.tree import diagnose
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.reason_codes import ReasonCode
from engine.suggestions.nodes import list_withheld_nodes
from tests.conformance.recorded_calls import build_facts_of_decision
from tests.support.builders.kube_objects import a_cluster, a_node, a_pod

CAUSE = "pods of hami-scheduler hold devices there"


def test_the_obstacle_names_the_scheduler_that_has_the_node() -> None:
    columns = a_cluster(a_node("shared"), a_node("small", devices=0))
    columns.exclude_node("shared", CAUSE)
    policy, started = SchedulingPolicy(), datetime(2026, 11, 28, tzinfo=UTC)
    facts = build_facts_of_decision(columns, a_pod(), ["shared", "cpu"], policy, started)
    diagnosis = diagnose(facts)
    assert diagnosis.obstacle
    obstacles = {obstacle.code: obstacle for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles)}
    obstacle = obstacles[ReasonCode.NODE_OF_ANOTHER_SCHEDULER]
    assert list(obstacle.nodes) == ["shared"]
    assert CAUSE in obstacle.sentence.en
    assert "--share-nodes-with" in obstacle.remedy.en
    assert list(obstacle.who_acts) == ["administrator"]
    assert list(obstacles[ReasonCode.NODE_UNREGISTERED].nodes) == ["cpu"]
    # Registering its devices again, which are registered, must not be suggested.
    assert facts.attempt
    assert list_withheld_nodes(facts.attempt) == {"shared"}
