"""A pod that is gone, as the index has it: who took its place, when and why."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api.index.pod_circumstances import parse_pod_state, parse_winner
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.evictions import find_winner_uid
from engine.diagnosis.tree import diagnose
from schemas.documents.observations import build_observation_document
from schemas.events import Condition, PodDescription, PodObserved, PodRef
from schemas.json_types import Json

BEGAN = datetime(2026, 11, 24, 8, 10, tzinfo=UTC)


def observe(seconds: float, name: str = "low", **fields: Any) -> PodObserved:
    pod = PodRef(namespace="lab", name=name, uid=f"uid-{name}")
    observed = {"cluster": "default", "pod": pod, "observed_at": BEGAN + timedelta(seconds=seconds), "phase": "Running"}
    return PodObserved.model_validate(observed | {"node": "n-7", "scheduler": "default-scheduler"} | fields)


def a_condition(kind: str, reason: str, message: str) -> Condition:
    return Condition(type=kind, status="True", reason=reason, message=message, last_transition_at=BEGAN)


def to_answer(*events: PodObserved) -> Json:
    """Convert events to the answer of the index, the latest first, as JSON."""
    latest_first = sorted(events, key=lambda event: event.observed_at, reverse=True)
    documents = [build_observation_document(event, "d") | {"event": event.model_dump(mode="json")}
                 for event in latest_first]  # fmt: skip
    return {"hits": {"hits": [{"_id": str(index), "_source": entry} for index, entry in enumerate(documents)]}}


DISRUPTED = a_condition(
    "DisruptionTarget", "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
)
PREEMPTED = a_condition("Preempted", "Preempted", "Preempted by pod uid-high on node n-7")
OBSERVED = (
    observe(0),
    observe(1, phase="", conditions=[PREEMPTED]),
    observe(2, phase="Failed", conditions=[DISRUPTED]),
    # As the watcher reports a deletion.
    observe(3, deleted=True, scheduler="", description=None),
)


def test_a_pod_that_is_gone_keeps_the_conditions_of_all_its_observations() -> None:
    state = parse_pod_state(to_answer(*OBSERVED))
    assert state
    assert state.is_gone
    assert {condition.type for condition in state.conditions} == {"DisruptionTarget", "Preempted"}
    assert find_winner_uid(state) == "uid-high"


def test_the_answer_names_who_took_the_place_when_and_why() -> None:
    state = parse_pod_state(to_answer(*OBSERVED))
    winner = parse_winner(to_answer(observe(2, "high", description=PodDescription(priority=1000)), observe(1, "high")))
    assert winner == ("lab/high", 1000)
    facts = DiagnosisFacts("default", "lab", "low", BEGAN + timedelta(hours=3), pod=state, winner=winner)
    sentence = diagnose(facts).sentence.en
    assert "default-scheduler preempted the pod on node n-7" in sentence
    assert "higher priority: lab/high" in sentence
    assert "at 08:10:00 UTC" in sentence


def test_a_winner_that_was_never_observed_is_not_named() -> None:
    assert parse_winner(to_answer()) is None
    state = parse_pod_state(to_answer(*OBSERVED))
    facts = DiagnosisFacts("default", "lab", "low", BEGAN, pod=state)
    assert "to make room for a pod of higher priority" in diagnose(facts).sentence.en
    assert "uid-high" not in diagnose(facts).sentence.en


def test_a_preemption_by_an_unnamed_scheduler_has_an_actor() -> None:
    state = parse_pod_state(to_answer(observe(1, conditions=[PREEMPTED], scheduler="", deleted=True)))
    facts = DiagnosisFacts("default", "lab", "low", BEGAN, pod=state)
    assert diagnose(facts).sentence.en.startswith("A scheduler preempted the pod on node n-7")
