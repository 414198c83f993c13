"""Failures after a node was chosen, in the words of kube-scheduler's framework (`pkg/scheduler/framework/runtime`)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.chosen_nodes import check_choice
from engine.diagnosis.outcome import FoundObstacle
from schemas.events import BindOutcome, Condition
from tests.support.builders.events import STARTED, a_summary

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)


def list_obstacles(words: str = "", **attempt: Any) -> list[FoundObstacle]:
    """List the obstacles of words on the pod, or of an attempt."""
    refusal = Condition(type="PodScheduled", status="False", reason="SchedulerError", message=words)
    pod = PodOnCluster(Evidence("pod", "p"), scheduler="default-scheduler", conditions=[refusal] if words else [])
    summary = a_summary([], **attempt) if attempt else None
    facts = DiagnosisFacts("default", "llm", "deepseek-a", NOW, summary, pod=pod)
    return [obstacle for step in check_choice(facts) for obstacle in step.obstacles]


def a_bind(error: str, *, bound: bool = False) -> BindOutcome:
    return BindOutcome(node="n1", bound=bound, error=error, ended_at=STARTED)


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ('running Reserve plugin "VolumeBinding": no volume', "ChoiceFailed",
         {"phase": "Reserve", "plugin": "VolumeBinding", "words": "no volume"}),
        ("running PreBind plugin DynamicResources: claim is gone", "ChoiceFailed",
         {"phase": "PreBind", "plugin": "DynamicResources", "words": "claim is gone"}),
        ('running Bind plugin "DefaultBinder": timeout', "ChoiceFailed", {"phase": "Bind"}),
        ('running Permit plugin "Coscheduling": x', "ChoiceFailed", {"phase": "Permit"}),
        ('running Filter plugin "NodeAffinity": x', "", {}),
        ("1 rejected due to timeout after waiting 60s at plugin Coscheduling", "PermitTimedOut",
         {"waited": "60s", "plugin": "Coscheduling"}),
        ("binding rejected: the queue is closed", "ChoiceFailed",
         {"phase": "Permit", "plugin": "?", "words": "the queue is closed"}),
        ('running PreBind plugin "X": Operation cannot be fulfilled on nodes "n1": the object has been modified',
         "BindConflict", {"object": 'nodes "n1"'}),
        ("waiting for resource driver to allocate resource", "ClaimDriverWaits",
         {"words": "waiting for resource driver to allocate resource"}),
        ("waiting for resource driver to provide information", "ClaimDriverWaits", {}),
        ("0/3 nodes are available: 3 Insufficient cpu.", "", {}),
        ("", "", {}),
    ],
)  # fmt: skip
def test_the_plugin_that_gave_the_node_up_is_named_with_its_words(
    words: str, code: str, expected: dict[str, str]
) -> None:
    obstacles = list_obstacles(words)
    assert [obstacle.code for obstacle in obstacles] == ([code] if code else [])
    for obstacle in obstacles:
        assert {name: obstacle.words[name] for name in expected} == expected
        assert (obstacle.words["scheduler"], list(obstacle.nodes)) == ("default-scheduler", [])


@pytest.mark.parametrize(
    ("attempt", "nodes"),
    [
        ({"bind": a_bind("binding rejected: closed"), "chosen": "n1"}, ["n1"]),
        ({"error": "binding rejected: closed"}, []),
        ({"bind": a_bind("", bound=True), "chosen": "n1"}, None),
    ],
)
def test_the_node_is_that_of_the_bind(attempt: dict[str, Any], nodes: list[str] | None) -> None:
    assert [list(obstacle.nodes) for obstacle in list_obstacles(**attempt)] == ([nodes] if nodes is not None else [])


LOCKED = "node n1 has been locked within 5 minutes"


def test_a_locked_node_is_named_where_no_bind_does_so() -> None:
    (obstacle,) = list_obstacles(f"binding rejected: {LOCKED}")
    assert (obstacle.code, list(obstacle.nodes)) == ("node lock contention", ["n1"])
    assert list_obstacles(bind=a_bind(LOCKED), chosen="n1") == []
