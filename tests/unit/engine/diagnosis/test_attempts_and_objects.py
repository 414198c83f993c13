"""The branches that need both an attempt and the objects of now: golden records beside what a real API server gave.

The objects are those of test_recorded_objects.py. What a test changes of a record or an object, it says.
"""

import json
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from schemas.answers.diagnosis import Diagnosis
from schemas.events import AttemptSummarized
from tests.support.builders.recorded_cluster import CREATED, HAMI, NAMESPACE, RECORDED, build_facts, build_objects

GOLDEN = Path("tests/contract/golden/io.schedulerlog.attempt.summarized.v1")
QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"


def read_attempt(number: str, **changed: Any) -> AttemptSummarized:
    """Read the golden attempt as one of a minute after the pod was created."""
    fields = json.loads((GOLDEN / f"{number}.json").read_text())
    attempt = AttemptSummarized.model_validate(fields | changed)
    started_at = CREATED + timedelta(minutes=1)
    return attempt.model_copy(update={"started_at": started_at, "ended_at": started_at})


def answer(facts: DiagnosisFacts, attempt: AttemptSummarized | None = None, *, is_latest: bool = True) -> Diagnosis:
    return diagnose(replace(facts, attempt=attempt or facts.attempt, is_latest=is_latest))


def list_answers(diagnosis: Diagnosis) -> dict[str, str]:
    return {step.step: step.answer for step in diagnosis.steps}


@pytest.mark.parametrize(
    ("error", "phase", "code", "sentence"),
    [
        (
            'persistentvolumeclaim "missing" not found',
            "",
            "ClaimMissing",
            "The pod names a PersistentVolumeClaim that does not exist: missing.",
        ),
        (
            "pod has unbound immediate PersistentVolumeClaims",
            "Pending",
            "ClaimUnbound",
            "A PersistentVolumeClaim of the pod has no volume: missing is Pending.",
        ),
    ],
)
def test_an_attempt_that_ended_for_a_claim_names_the_claim(error: str, phase: str, code: str, sentence: str) -> None:
    """kube-scheduler's words (cases/messages.toml); the claim as the API server has it, missing or of no volume."""
    facts = build_facts("no-claim", seconds=90)
    claims = [claim._replace(phase=phase, waits_for_pod=False) for claim in facts.claims or ()]
    diagnosis = answer(replace(facts, claims=claims), read_attempt("004", error=error))
    assert diagnosis.obstacle
    assert (diagnosis.obstacle.code, diagnosis.sentence.en) == (code, sentence)
    assert list_answers(diagnosis)["ClaimsReady"] == "no"
    # The claim explains the error of the attempt.
    assert not diagnosis.other_obstacles


def test_nodes_that_the_scheduler_of_devices_was_not_offered_are_explained_by_what_closes_them() -> None:
    diagnosis = answer(build_facts("tainted", seconds=90), read_attempt("002"))
    assert list_answers(diagnosis)["NodesOpen"] == "no"
    assert "TaintNotTolerated" in [
        obstacle.code for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles) if obstacle
    ]


def test_a_quota_of_devices_that_the_scheduler_counts_is_shown_with_its_numbers() -> None:
    """The golden attempt with HAMi's word for it; the recorded quota on the resource that HAMi counts, nearly used."""
    api = build_objects()
    for quota in api.objects[QUOTAS]["items"]:
        quota["status"] = {"hard": {"limits.nvidia.com/gpumem": "80000"}, "used": {"limits.nvidia.com/gpumem": "60000"}}
    refusals = [{"counts": {}, "devices": 0, "bare": "ResourceQuotaNotFit", "cause": ""}] * 9
    diagnosis = answer(build_facts("misspelt", api, 90), read_attempt("002", refusals=refusals))
    (quota_obstacle,) = (
        obstacle
        for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles)
        if obstacle and obstacle.code == "ResourceQuotaNotFit"
    )
    assert "of limits.nvidia.com/gpumem, 60,000 of 80,000 are used" in quota_obstacle.sentence.en
    assert "quota" in [item.kind for item in quota_obstacle.evidence]


def test_a_quota_that_is_used_up_is_an_answer_with_numbers_and_no_obstacle() -> None:
    """The recorded quota with all of it used: the API server has let the pod in nevertheless."""
    api = build_objects()
    for quota in api.objects[QUOTAS]["items"]:
        quota["status"]["used"] = quota["status"]["hard"]
    diagnosis = answer(build_facts("misspelt", api))
    (step,) = (candidate for candidate in diagnosis.steps if candidate.step == "QuotaLeft")
    assert step.answer == "no"
    assert step.evidence[0].numbers == {"requests.nvidia.com/gpu.used": 4, "requests.nvidia.com/gpu.hard": 4}


def test_whole_devices_may_be_those_of_another_plugin_which_kubernetes_own_scheduler_places() -> None:
    """A pod without shares, which default-scheduler has judged (golden), beside a scheduler of devices."""
    pod = deepcopy(RECORDED["misspelt"])
    pod["spec"]["schedulerName"] = "default-scheduler"
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    facts = build_facts("misspelt", build_objects(misspelt=pod), 90, schedulers=[HAMI])
    diagnosis = answer(facts, read_attempt("004"))
    assert list_answers(diagnosis)["WebhookCalled"] == "not known"
    assert "WebhookNotCalled" not in [
        obstacle.code for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles) if obstacle
    ]


def test_a_bind_of_an_attempt_that_others_followed_is_stated() -> None:
    bind = json.loads((GOLDEN / "001.json").read_text())["bind"] | {"bound": True, "error": "", "lock_holder": None}
    diagnosis = answer(build_facts("placed", seconds=90), read_attempt("001", bind=bind), is_latest=False)
    assert (diagnosis.state, list_answers(diagnosis)["Bound"]) == ("placed", "yes")


def test_a_pod_on_its_node_that_has_neither_started_nor_failed_is_not_known_to_start() -> None:
    """The recorded pod, before its kubelet has reported anything."""
    pod = deepcopy(RECORDED["placed"])
    pod["status"]["phase"] = "Pending"
    diagnosis = answer(build_facts("placed", build_objects(placed=pod)))
    assert (list_answers(diagnosis)["Starts"], diagnosis.obstacle) == ("not known", None)


@pytest.mark.parametrize(
    ("value", "holder"),
    [
        ("2026-11-23T07:22:20Z,llm,qwen-0", "llm/qwen-0"),
        ("2026-11-23T07:22:20Z", ""),
        ("2026-11-23T07:22:20Z,llm", None),
        ("yesterday,llm,qwen-0", None),
    ],
)
def test_a_nodes_lock_is_read_in_both_of_hamis_forms(value: str, holder: str | None) -> None:
    """The recorded nodes with a lock as HAMi writes it: since v2.5 with the pod, before without; others are none."""
    api = build_objects()
    for node in api.objects["/api/v1/nodes"]["items"]:
        node["metadata"]["annotations"]["hami.io/mutex.lock"] = value
    locks = [node.lock for node in build_facts("placed", api).nodes or ()]
    assert len(locks) == 3
    assert {lock.holder if lock else None for lock in locks} == {holder}
