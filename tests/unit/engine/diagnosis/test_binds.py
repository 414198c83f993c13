"""The branches about the bind: a golden record, with what other real runs report of a bind in its place.

The words of the API server are those that a real one gave to an account without the right to bind.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, HeldLock, NodeFacts, PodOnCluster
from engine.diagnosis.tree import diagnose
from schemas.answers.diagnosis import Diagnosis
from schemas.events import AttemptSummarized

GOLDEN = json.loads(Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1/001.json").read_text())
FORBIDDEN = (
    'pods "train-0" is forbidden: User "system:serviceaccount:kube-system:hami-scheduler" cannot create resource '
    '"pods/binding" in API group "" in the namespace "llm"'
)


def answer(bind: dict[str, Any] | None = None, **more: Any) -> Diagnosis:
    """Diagnose the golden record with the changes in ``bind``."""
    attempt = AttemptSummarized.model_validate(GOLDEN | {"bind": GOLDEN["bind"] | (bind or {})})
    now = attempt.started_at + timedelta(minutes=3)
    return diagnose(
        DiagnosisFacts("default", attempt.pod.namespace, attempt.pod.name, now, attempt, **more), "/attempt"
    )


def test_another_pods_lock_is_stated_with_the_pod_and_how_long_it_was_held() -> None:
    diagnosis = answer()
    assert diagnosis.sentence.en == (
        "Node node5 was chosen, and another pod held its lock: llm/qwen-0, for 2 s when the bind was tried."
    )
    assert (diagnosis.state, diagnosis.attempt) == ("refused", "/attempt")
    assert diagnosis.obstacle
    assert diagnosis.obstacle.code == "node lock contention"
    # The remedy's command is about this node.
    assert "kubectl get node node5 -o jsonpath=" in diagnosis.obstacle.remedy.en


def test_a_lock_that_still_holds_is_shown_from_the_node_as_it_is_now() -> None:
    attempt = AttemptSummarized.model_validate(GOLDEN)
    node = NodeFacts("node5", Evidence("node", "/api/v1/nodes/node5"), lock=HeldLock(attempt.started_at, "llm/qwen-0"))
    assert answer(nodes=[node]).sentence.en.endswith("; the node is still locked, since 02:15:42 UTC.")


def test_a_right_that_the_scheduler_lacks_is_for_the_administrator() -> None:
    diagnosis = answer({"error": FORBIDDEN, "lock_holder": None})
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.obstacle.who_acts) == ("SchedulerForbidden", ["administrator"])
    assert diagnosis.sentence.en == (
        f"Node node5 was chosen, and the API server does not let the scheduler write what a bind needs: {FORBIDDEN}."
    )
    answers = {step.step: step.answer for step in diagnosis.steps}
    assert (answers["NodeUnlocked"], answers["SchedulerMayBind"], answers["Bound"]) == ("yes", "no", "no")


@pytest.mark.parametrize("error", ['nodes "node5" not found', "etcdserver: request timed out"])
def test_another_failure_of_the_bind_is_stated_in_its_words(error: str) -> None:
    diagnosis = answer({"error": error, "lock_holder": None})
    assert diagnosis.sentence.en == f"Node node5 was chosen, and the pod could not be bound to it: {error}."


def test_a_bound_pod_is_placed() -> None:
    diagnosis = answer({"bound": True, "error": "", "lock_holder": None})
    assert (diagnosis.state, diagnosis.obstacle) == ("placed", None)
    uuids = "GPU-2f5b9a1e-70c4-4a3b-9d0e-51f0c6b3c7aa, GPU-93d5f1b0-1c0a-4be7-8f0f-8b8a2a7cd0bb"
    devices = f"{uuids} (NVIDIA A100-SXM4-80GB): 20,480 MiB and 20 % of the compute of each"
    assert diagnosis.sentence.en == f"The pod is on node node5, with {devices}."


def test_an_observation_of_before_the_bind_does_not_hide_it() -> None:
    attempt = AttemptSummarized.model_validate(GOLDEN)
    before = PodOnCluster(Evidence("pod", "x", attempt.started_at), phase="Pending")
    diagnosis = answer({"bound": True, "error": "", "lock_holder": None}, pod=before)
    assert (diagnosis.state, [step.answer for step in diagnosis.steps]) == ("placed", ["yes", "no"])


def test_an_attempt_that_others_followed_is_explained_by_its_records_alone() -> None:
    diagnosis = answer(is_latest=False)
    assert [step.step for step in diagnosis.steps] == [
        "FilterRan",
        "NodePassed",
        "NodeUnlocked",
        "SchedulerMayBind",
        "Bound",
    ]


def test_an_attempt_whose_end_is_missing_says_so() -> None:
    record = Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1/003.json")
    attempt = AttemptSummarized.model_validate_json(record.read_bytes())
    now = attempt.started_at + timedelta(minutes=3)
    diagnosis = diagnose(DiagnosisFacts("default", attempt.pod.namespace, attempt.pod.name, now, attempt))
    assert (diagnosis.state, diagnosis.sentence.en) == (
        "binding", "The attempt began 3 min ago, 1 node passed the filter, and its end is not recorded.",
    )  # fmt: skip
