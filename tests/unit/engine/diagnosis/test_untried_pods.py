"""Pods that wait although no scheduler tries them: their obstacle and layer in lists, from an observation only."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.layer_waits import find_layer_of_code
from engine.diagnosis.waiting import NOT_TRIED, derive_wait_without_attempt
from schemas.events import Condition, ObjectProblem, Owner, PodDescription, PodObserved, PodRef, PodWait, Request

CREATED = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
GATED = Condition(type="PodScheduled", status="False", reason="SchedulingGated", message="Scheduling is blocked")
REFUSED = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are available: …")
OF_JOB = PodDescription(owners=[Owner(kind="Job", name="train")], queue="night", created_at=CREATED)
EIGHT = Request(container="main", vendor="NVIDIA", count=8)


def derive(**fields: Any) -> PodWait | None:
    observed: dict[str, Any] = {
        "cluster": "default", "pod": PodRef(namespace="lab", name="train-0", uid="u"), "observed_at": CREATED,
        "phase": "Pending", "scheduler": "default-scheduler", "description": OF_JOB,
    }  # fmt: skip
    return derive_wait_without_attempt(PodObserved.model_validate({**observed, **fields}))


def test_a_gate_of_kueue_names_the_queue_and_counts_the_devices() -> None:
    wait = derive(conditions=[GATED], gates=["kueue.x-k8s.io/admission"], requests=[EIGHT])
    assert wait
    assert (wait.code, wait.devices, find_layer_of_code(wait.code)) == ("KueueHolds", 8, "queue")
    assert "night" in wait.sentence_en


def test_a_gate_of_another_controller_is_named() -> None:
    wait = derive(conditions=[GATED], gates=["example.com/license"])
    assert wait
    assert (wait.code, find_layer_of_code(wait.code)) == ("SchedulingGated", "gate")
    assert "example.com/license" in wait.sentence_en


def test_a_pod_without_any_word_waits_too() -> None:
    """A pod whose gang or claim is missing gets neither an event nor a condition."""
    wait = derive()
    assert wait
    assert wait.code in (NOT_TRIED, "NotYetSeen")
    assert wait.sentence_en
    # Without its age it can't be separated from a pod that was tried a moment ago.
    assert derive(description=None) is None


def test_a_pod_that_its_kubelet_refused_waits_for_its_owner() -> None:
    words = "Node didn't have enough resource: cpu, requested: 4000, used: 2000, capacity: 4000"
    problem = ObjectProblem(reason="OutOfcpu", message=f"Pod was rejected: {words}", at=CREATED)
    wait = derive(phase="Failed", node="n1", problems=[problem])
    assert wait
    assert (wait.code, find_layer_of_code(wait.code)) == ("KubeletOutOfResource", "start")


@pytest.mark.parametrize(
    "fields",
    [
        {"conditions": [REFUSED]},
        {"node": "n1"},
        {"phase": "Running", "node": "n1"},
        {"deleted": True},
        {"phase": "Failed", "node": "n1"},
        {
            "phase": "Failed",
            "node": "n1",
            "started_at": CREATED,
            "problems": [ObjectProblem(reason="Error", message="exit 1", at=CREATED)],
        },
        {"phase": "Succeeded", "node": "n1"},
        {"bind_phase": "allocating"},
    ],
)
def test_pods_that_were_tried_placed_or_ended_are_left_to_their_attempts(fields: dict[str, Any]) -> None:
    assert derive(**fields) is None
