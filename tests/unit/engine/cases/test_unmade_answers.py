"""Pods that a workload has not made: what refused them or holds them, and the row that a list has of them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cases.unmade_answers import (
    build_unmade_facts,
    diagnose_unmade,
    explain_unmade,
    find_owner_problem,
    quote_status,
)
from engine.cases.workloads import CaseWorkload, list_family
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import CaseObjects, collect_objects
from engine.snapshot.kinds import identify
from schemas.answers.diagnosis import Diagnosis
from schemas.json_types import Json
from tests.support.builders.layer_objects import to_english
from tests.support.builders.workload_objects import NOW, a_job, a_template, a_workload, an_owner, to_stamp

VOLCANO = "scheduling.volcano.sh/v1beta1"


def an_event(kind: str, name: str, message: str, *, reason: str = "FailedCreate", minute: int | None = 2) -> Json:
    time = {} if minute is None else {"lastTimestamp": to_stamp(minute)}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.{minute}", "namespace": "ml"},
            "involvedObject": {"kind": kind, "name": name, "namespace": "ml"}, "reason": reason, "message": message,
            "type": "Warning", "source": {"component": "job-controller"}, **time}  # fmt: skip


def get_key(entry: Json) -> CaseWorkload:
    return CaseWorkload(identify(entry["apiVersion"], entry["kind"]), "ml", entry["metadata"]["name"])


def with_status(entry: Json, **status: Any) -> Json:
    return entry | {"status": status}


def a_condition(kind: str, message: str = "", *, status: str = "True", minute: int = 1) -> Json:
    time = to_stamp(minute)
    return {"type": kind, "status": status, "reason": "Reason", "message": message, "lastTransitionTime": time}


def ask(*objects: Json) -> Diagnosis:
    """Diagnose three pods of the first object, which has no template to build them from."""
    case, key = collect_objects(objects), get_key(objects[0])
    return diagnose_unmade(build_unmade_facts(case, NOW, key, None), case, key, list_family(case, key), 3)


def get_obstacle(diagnosis: Diagnosis) -> tuple[str, str]:
    assert diagnosis.obstacle
    return diagnosis.obstacle.code, diagnosis.obstacle.sentence.en


def with_uid(entry: Json) -> Json:
    return entry | {"metadata": entry["metadata"] | {"uid": "u"}}


def find_words(*objects: Json) -> tuple[str, str, datetime, str] | None:
    case, key = collect_objects(objects), get_key(objects[0])
    problem = find_owner_problem(case, list_family(case, key))
    if problem is None:
        return None
    assert problem.source.words == problem.problem.message
    return problem.workload, problem.problem.message, problem.problem.at, problem.problem.reported_by


SET = a_workload("apps/v1", "ReplicaSet", "web-1", {"replicas": 1})


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([a_job()], None),
        ([a_job(), an_event("Job", "train", "no")], ("Job/train", "no", 2, "job-controller")),
        ([a_job(), an_event("Job", "train", "no", reason="FailedCreatePod")], ("Job/train", "no", 2, "job-controller")),
        ([a_job(), an_event("Job", "train", "no", reason="BackoffLimitExceeded")], None),
        ([a_job(), an_event("Job", "other", "no")], None),
        ([a_job(), an_event("Job", "train", "no", minute=None)], None),
        # The latest words count, of whatever object of the family.
        ([a_job(), an_event("Job", "train", "old", minute=1), an_event("Job", "train", "new", minute=3)],
         ("Job/train", "new", 3, "job-controller")),
        # The controller of ReplicaSets also writes a condition.
        ([with_status(SET, conditions=[a_condition("ReplicaFailure", "quota")])], ("ReplicaSet/web-1", "quota", 1, "")),
        ([with_status(SET, conditions=[a_condition("ReplicaFailure", "quota", status="False")])], None),
        ([with_status(SET, conditions=[a_condition("Available", "quota")])], None),
    ],
)  # fmt: skip
def test_the_latest_words_with_which_a_pod_was_refused(
    objects: list[Json], expected: tuple[str, str, int, str] | None
) -> None:
    words = find_words(*objects)
    if expected is None:
        assert words is None
        return
    workload, message, minute, reporter = expected
    assert words == (workload, message, datetime(2026, 1, 1, 12, minute, tzinfo=UTC), reporter)


def test_a_refused_pod_does_not_exist_whether_or_not_its_template_was_read() -> None:
    assert get_obstacle(ask(a_job(), an_event("Job", "train", "no")))[0] == "OwnerRefused"
    case = collect_objects([a_job(), an_event("Job", "train", "no")])
    row = explain_unmade(case, NOW, CaseWorkload("Job.batch", "ml", "train"))
    assert row.obstacle
    assert row.obstacle.code == "OwnerRefused"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        # No API server has stored it: it gives every object a UID and a time.
        (a_job(), "PodsNotMade"),
        (with_uid(a_workload("batch/v1", "Job", "train", {})), "PodsNotMade"),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"}}, "NotFromCluster"),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"},
          "status": {"active": 0, "ready": 0}}, "PodsNotMade"),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"},
          "spec": {"suspend": True}}, "WorkloadSuspended"),
        (a_job(suspend=True), "WorkloadSuspended"),
        (a_job(runPolicy={"suspend": True}), "WorkloadSuspended"),
    ],
)  # fmt: skip
def test_a_workload_of_which_nothing_speaks(entry: Json, code: str) -> None:
    assert get_obstacle(ask(entry))[0] == code


def test_a_silent_workload_is_evidence_with_the_number_of_its_pods() -> None:
    diagnosis = ask(a_job())
    assert diagnosis.obstacle
    assert "Job/train has not made 3 of its pods" in diagnosis.sentence.en
    assert [evidence.record for evidence in diagnosis.obstacle.evidence] == ["ml/Job/train"]


QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.mark.parametrize(
    ("metadata", "is_held", "code", "is_misplaced"),
    [
        ({"labels": {QUEUE: "night"}}, True, "KueueNotSeen", False),
        ({"annotations": {QUEUE: "night"}}, True, "WorkloadSuspended", True),
        ({}, True, "WorkloadSuspended", False),
        ({"labels": {QUEUE: "night"}}, False, "PodsNotMade", False),
        ({"annotations": {QUEUE: "night"}}, False, "PodsNotMade", False),
    ],
)
def test_a_queue_of_kueue_matters_to_a_suspended_workload(
    metadata: Json, is_held: bool, code: str, is_misplaced: bool
) -> None:
    job = a_job(suspend=is_held)
    job["metadata"] |= metadata
    obstacle, sentence = get_obstacle(ask(job))
    assert obstacle == code
    assert ("annotation" in sentence) == is_misplaced


GANG = "2/3 tasks in gang unschedulable: pod group is not ready"


def a_group(*messages: str, **more: Any) -> Json:
    conditions = [a_condition("Unschedulable", message) for message in messages]
    spec = {"minMember": 3} | ({"queue": more["queue"]} if "queue" in more else {})
    running = {"running": more["running"]} if "running" in more else {}
    return with_status(a_workload(VOLCANO, "PodGroup", "g", spec), phase="Pending", conditions=conditions, **running)


@pytest.mark.parametrize(
    ("objects", "quoted"),
    [
        # The words of its queue say more than those of its gang.
        ([a_group(GANG, "queue is full")], f"queue is full; {GANG}"),
        ([a_group("a"), an_event("PodGroup", "g", "b", reason="Unschedulable")], "b; a"),
        ([a_group("a", "a", "b")], "a; b"),
        # Three of them are quoted.
        ([a_group("a", "b", "c", "d")], "a; b; c"),
    ],
)
def test_the_schedulers_words_on_a_group_are_quoted(objects: list[Json], quoted: str) -> None:
    code, sentence = get_obstacle(ask(*objects))
    assert code == "GroupNotPlaced"
    assert sentence == f"Volcano does not place the group g: {quoted}."


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (a_group(), "PodsNotMade"),
        (with_status(a_group(), conditions=[a_condition("Unschedulable", "no", status="False")]), "PodsNotMade"),
        (a_group("no"), "GroupNotPlaced"),
    ],
)
def test_a_group_without_words_says_nothing(group: Json, expected: str) -> None:
    assert get_obstacle(ask(group))[0] == expected


@pytest.mark.parametrize(
    ("more", "queue", "running"),
    [
        ({}, None, None),
        ({"queue": "research"}, "research", None),
        ({"running": 2}, None, 2),
        ({"running": 0}, None, None),
    ],
)
def test_a_group_is_described_with_its_queue_and_its_running_pods(
    more: Json, queue: str | None, running: int | None
) -> None:
    diagnosis = ask(a_group("no", **more))
    assert diagnosis.obstacle
    assert ("research" in diagnosis.obstacle.sentence.en) == (queue is not None)
    assert ("2" in diagnosis.obstacle.sentence.en) == (running is not None)


def test_the_group_of_a_job_speaks_for_the_job() -> None:
    job = a_workload("batch.volcano.sh/v1alpha1", "Job", "train", {"tasks": [{"replicas": 3}]})
    group = a_group("no room")
    group["metadata"]["ownerReferences"] = [an_owner("Job", "train", "batch.volcano.sh/v1alpha1")]
    assert get_obstacle(ask(job, group))[0] == "GroupNotPlaced"


def quote(entry: Json) -> FoundObstacle | None:
    return quote_status(collect_objects([entry]), get_key(entry))


@pytest.mark.parametrize(
    ("status", "words", "state"),
    [
        ({"message": "waits for a lock"}, "waits for a lock", ""),
        ({"message": "waits for a lock", "phase": "Pending"}, "waits for a lock", "Pending"),
        # Spark's operator has a place of its own for both.
        ({"applicationState": {"state": "SUBMISSION_FAILED", "errorMessage": "no image"}}, "no image",
         "SUBMISSION_FAILED"),
        ({"phase": "Pending"}, None, ""),
        ({}, None, ""),
    ],
)  # fmt: skip
def test_a_status_is_quoted_with_its_state(status: Json, words: str | None, state: str) -> None:
    obstacle = quote(a_workload("argoproj.io/v1alpha1", "Workflow", "train", {}, status=status))
    if words is None:
        assert obstacle is None
        return
    assert obstacle
    assert {name: to_english(word) for name, word in obstacle.words.items()} == {
        "workload": "Workflow/train", "words": words, "state": state,
    }  # fmt: skip
    assert obstacle.clauses == (["state"] if state else [])
    [evidence] = obstacle.evidence
    assert (evidence.record, evidence.time, evidence.words) == (
        "ml/Workflow/train", datetime(2026, 1, 1, 12, 0, tzinfo=UTC), words,
    )  # fmt: skip


def test_a_workload_that_speaks_is_not_silent_unless_it_is_suspended() -> None:
    status = {"message": "waits for a lock"}
    workflow = a_workload("argoproj.io/v1alpha1", "Workflow", "train", {}, status=status)
    assert get_obstacle(ask(workflow))[0] == "WorkloadSays"
    assert get_obstacle(ask(workflow | {"spec": {"suspend": True}}))[0] == "WorkloadSuspended"


def list_row(*objects: Json) -> tuple[str, int, int]:
    """List queue, pods and devices of the first object."""
    row = explain_unmade(collect_objects(objects), NOW, get_key(objects[0]))
    assert row.obstacle
    assert row.created_at == datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    return row.queue, row.pods, row.devices


def a_gpu_template(count: int) -> Json:
    template = a_template("1")
    template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = str(count)
    return template


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (a_job(parallelism=3), ("", 3, 0)),
        (a_job(parallelism=3, template=a_gpu_template(2)), ("", 3, 6)),
        # A kind that names no number wants one pod or more.
        (a_workload("kubeflow.org/v1", "PyTorchJob", "train",
                    {"pytorchReplicaSpecs": {"Master": {"template": a_gpu_template(4)}}}), ("", 0, 4)),
        (a_workload("kubeflow.org/v1", "PyTorchJob", "train", {}), ("", 0, 0)),
        (a_workload("batch.volcano.sh/v1alpha1", "Job", "train", {"queue": "research"}), ("research", 0, 0)),
        (a_workload("kueue.x-k8s.io/v1beta2", "Workload", "train", {"queueName": "night"}), ("night", 0, 0)),
    ],
)  # fmt: skip
def test_a_list_has_the_queue_the_pods_and_their_devices(entry: Json, expected: tuple[str, int, int]) -> None:
    assert list_row(entry) == expected


def test_kueues_workload_counts_the_pods_of_a_kind_without_a_number() -> None:
    version = "kubeflow.org/v1"
    job = a_workload(version, "PyTorchJob", "train", {"runPolicy": {"suspend": True}, "template": a_gpu_template(1)})
    job["spec"]["pytorchReplicaSpecs"] = {"Master": {"template": job["spec"].pop("template")}}
    pod_sets = [{"name": "master", "count": 2}, {"name": "worker", "count": 3}]
    held = a_condition(
        "QuotaReserved", "insufficient unused quota for cpu in flavor any, 4 more needed", status="False"
    )
    workload = a_workload(
        "kueue.x-k8s.io/v1beta2", "Workload", "train", {"podSets": pod_sets}, an_owner("PyTorchJob", "train", version),
        status={"conditions": [held]},
    )  # fmt: skip
    assert list_row(job, workload) == ("", 5, 5)
    row = explain_unmade(collect_objects([job, workload]), NOW, get_key(job))
    assert row.obstacle
    # A layer above the nodes holds it.
    assert row.obstacle.code == "KueueWaitsForQuota"


def test_a_kind_without_a_number_has_not_made_one_pod() -> None:
    row = explain_unmade(
        collect_objects([job := a_workload("kubeflow.org/v1", "PyTorchJob", "train", {})]), NOW, get_key(job)
    )
    assert row.obstacle
    assert "has not made 1 of its pods" in row.obstacle.sentence.en


def test_the_label_of_a_queue_comes_before_other_fields() -> None:
    job = a_workload("batch.volcano.sh/v1alpha1", "Job", "train", {"queue": "research"})
    job["metadata"]["labels"] = {QUEUE: "night"}
    assert list_row(job)[0] == "night"


def test_facts_about_an_unmade_pod_have_the_pod_of_the_template_and_all_others() -> None:
    case: CaseObjects = collect_objects([a_job()])
    pod = {"metadata": {"name": "train", "namespace": "ml"}, "spec": {"containers": [{"name": "main"}]}}
    facts = build_unmade_facts(case, NOW, CaseWorkload("Job.batch", "ml", "train"), pod)
    assert facts.pod
    assert (facts.namespace, facts.name, facts.now) == ("ml", "train", NOW)
    assert build_unmade_facts(case, NOW, CaseWorkload("Job.batch", "ml", "train"), None).pod is None
