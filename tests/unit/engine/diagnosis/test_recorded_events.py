"""Diagnoses from recorded messages of kube-scheduler."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from engine.diagnosis.waiting import derive_wait
from engine.summaries.fold import AttemptFold
from engine.summaries.named_pods import hide_pods_in_attempt
from schemas.answers.diagnosis import Diagnosis
from schemas.events import AttemptEvent, AttemptSummarized
from tests.support.builders.api_server_objects import a_pod, an_event, an_old_event, read

NOW = datetime(2026, 11, 21, 3, 16, 32, tzinfo=UTC)


def summarize_last(*objects: tuple[Any, Any]) -> AttemptSummarized:
    folds: dict[str, AttemptFold] = {}
    for event in read(*objects):
        if isinstance(event, AttemptEvent):
            folds.setdefault(event.attempt_id, AttemptFold()).add(event)
    return max((fold.summarize() for fold in folds.values()), key=lambda attempt: attempt.started_at)


def answer(note: str) -> Diagnosis:
    """Diagnose a pod that kube-scheduler refused with this text."""
    attempt = summarize_last(("pod", a_pod()), ("event", an_event("FailedScheduling", note)))
    return diagnose(DiagnosisFacts("default", "ml", "gpu8", NOW, attempt))


TEXTS = tomllib.loads((Path(__file__).parent / "cases" / "messages.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["code"])
def test_the_main_reason_of_a_refusal_is_stated_with_its_nodes(case: dict[str, str]) -> None:
    diagnosis = answer(case["note"])
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.sentence.en) == (case["code"], case["sentence"])
    # The scheduler's words are the evidence, word for word.
    note = " ".join(case["note"].split())
    assert any(note in " ".join(item.words.split()) for step in diagnosis.steps for item in step.evidence)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["code"])
def test_lists_of_waiting_pods_name_the_same_reason(case: dict[str, str]) -> None:
    attempt = summarize_last(("pod", a_pod()), ("event", an_event("FailedScheduling", case["note"])))
    public = hide_pods_in_attempt(attempt)
    facts = DiagnosisFacts("default", "ml", "gpu8", attempt.started_at, public, is_latest=False)
    main, wait = diagnose(facts).obstacle, derive_wait(attempt)
    assert main
    assert wait
    assert (wait.code, wait.sentence_en, wait.sentence_zh) == (main.code, main.sentence.en, main.sentence.zh)


def test_what_else_kube_scheduler_says_of_the_nodes_are_further_obstacles() -> None:
    (note,) = (case["note"] for case in TEXTS if "volume node affinity conflict" in case["note"])
    diagnosis = answer(note)
    counts = {obstacle.code: obstacle.numbers["nodes"] for obstacle in diagnosis.other_obstacles}
    assert (counts["VolumeElsewhere"], counts["AffinityMismatch"]) == (25, 24)


def test_a_pod_that_waits_for_others_to_leave_its_node() -> None:
    """NOMINATED pod=gpu-prio node=gpu-1, from a real preemption."""
    note = "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu."
    pod = a_pod(nominated="gpu-1", condition=note)
    attempt = summarize_last(("pod", pod), ("event", an_event("FailedScheduling", note)))
    diagnosis = diagnose(DiagnosisFacts("default", "ml", "gpu8", NOW, attempt))
    assert (
        diagnosis.sentence.en == "The pod has node gpu-1 reserved, and waits until pods of lower priority have left it."
    )
    assert diagnosis.obstacle
    assert diagnosis.obstacle.who_acts == ["wait"]


HAMI = [
    (
        [
            "1 nodes CardUuidMismatch(worker-1)", "1 nodes ModeNotFit(worker-2)",
            "2 nodes CardInsufficientMemory(worker-0,worker-1)", "no available node, 3 nodes do not meet",
        ],
        {"CardInsufficientMemory", "CardUuidMismatch", "ModeNotFit"},
    ),
    (
        ["1 nodes CardNotFoundCustomFilterRule(worker-0)", "no available node, 1 nodes do not meet"],
        {"CardNotFoundCustomFilterRule"},
    ),
    (["2 nodes NumaNotFit(worker-0,worker-1)", "no available node, 2 nodes do not meet"], {"NumaNotFit"}),
]  # fmt: skip


@pytest.mark.parametrize(("notes", "codes"), HAMI, ids=["ModeNotFit", "CardNotFoundCustomFilterRule", "NumaNotFit"])
def test_hamis_events_name_the_nodes(notes: list[str], codes: set[str]) -> None:
    events = [an_old_event("FilteringFailed", note) | {"metadata": {"name": note}} for note in notes]
    attempt = summarize_last(*(("event", event) for event in events))
    diagnosis = diagnose(DiagnosisFacts("default", "ml", "deepseek", NOW, attempt))
    assert diagnosis.obstacle
    assert {obstacle.code for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles)} == codes
    assert all(obstacle.nodes[0].startswith("worker-") for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles))
