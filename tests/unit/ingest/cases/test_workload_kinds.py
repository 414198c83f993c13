"""Workloads of operators: their pods through every maker between, and their own words without pods.

Nothing here is recorded. The objects are built from the operators' API types: Argo's ``pkg/apis/workflow/v1alpha1``,
Spark's ``api/v1beta2`` of the Kubeflow operator, Ray's ``ray-operator/apis/ray/v1``, ``api/leaderworkerset/v1``.
"""

from typing import Any

import pytest

from engine.cases.workload_lists import list_family_kinds
from engine.cases.workloads import CaseWorkload, find_workloads, list_without_pods
from engine.snapshot.needed_kinds import GroupVersions
from ingest.cases.read_case import build_case
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.workloads import WorkloadDiagnosis
from schemas.json_types import Json
from tests.support.builders.workload_objects import (
    NOW,
    a_node,
    a_pod,
    a_template,
    a_workload,
    an_owner,
    to_stamp,
)

ARGO, SPARK, RAY = "argoproj.io/v1alpha1", "sparkoperator.k8s.io/v1beta2", "ray.io/v1"
LEADER_WORKER_SET = "leaderworkerset.x-k8s.io/v1"


def a_refused_pod(name: str, owner: Json) -> Json:
    refusal = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": to_stamp(2),
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }  # fmt: skip
    return a_pod(name, owner, cpu="9", conditions=[refusal])


def ask(word: str, name: str, *objects: Json) -> WorkloadDiagnosis:
    case = build_case([a_node("n1"), *objects], (), NOW)
    [key] = find_workloads(case.objects, word, name)
    return diagnose_workload(case, key)


def list_waiting(answer: WorkloadDiagnosis) -> list[str]:
    return [name for group in answer.groups if group.state == "refused" for name in group.pods]


def test_a_workflow_of_argo_owns_its_pods() -> None:
    owner = an_owner("Workflow", "nightly", ARGO)
    workflow = a_workload(ARGO, "Workflow", "nightly", {"templates": [{"name": "m", "container": {}}]})
    answer = ask("wf", "nightly", workflow, *(a_refused_pod(f"nightly-{n}", owner) for n in (1, 2)))
    assert (answer.state, answer.waiting, list_waiting(answer)) == ("waiting", 2, ["nightly-1", "nightly-2"])


def test_executors_of_spark_belong_to_the_application_through_its_driver() -> None:
    application = a_workload(SPARK, "SparkApplication", "etl", {"driver": {}, "executor": {"instances": 2}})
    driver = a_pod("etl-driver", an_owner("SparkApplication", "etl", SPARK), cpu="1", node="n1", phase="Running")
    executors = [a_refused_pod(f"etl-exec-{n}", an_owner("Pod", "etl-driver", "v1")) for n in (1, 2)]
    answer = ask("sparkapplication", "etl", application, driver, *executors)
    assert (answer.placed, answer.waiting, list_waiting(answer)) == (1, 2, ["etl-exec-1", "etl-exec-2"])


def test_workers_of_a_leader_belong_to_its_set_through_the_leaders_pod() -> None:
    group = a_workload(LEADER_WORKER_SET, "LeaderWorkerSet", "llm", {"replicas": 1})
    leaders = a_workload(
        "apps/v1", "StatefulSet", "llm", {"replicas": 1, "template": a_template("1")},
        an_owner("LeaderWorkerSet", "llm", LEADER_WORKER_SET),
    )  # fmt: skip
    leader = a_pod("llm-0", an_owner("StatefulSet", "llm", "apps/v1"), cpu="1", node="n1", phase="Running")
    workers = a_workload(
        "apps/v1", "StatefulSet", "llm-0", {"replicas": 1, "template": a_template("9")}, an_owner("Pod", "llm-0", "v1")
    )
    worker = a_refused_pod("llm-0-1", an_owner("StatefulSet", "llm-0", "apps/v1"))
    answer = ask("lws", "llm", group, leaders, leader, workers, worker)
    assert (answer.placed, list_waiting(answer)) == (1, ["llm-0-1"])


@pytest.mark.parametrize(
    ("word", "version", "kind", "child"),
    [("rayjob", RAY, "RayJob", "RayCluster"), ("rayservice", RAY, "RayService", "RayCluster")],
)
def test_pods_of_a_ray_cluster_belong_to_what_made_it(word: str, version: str, kind: str, child: str) -> None:
    maker = a_workload(version, kind, "serve", {})
    cluster = a_workload(version, child, "serve-x", {}, an_owner(kind, "serve", version))
    answer = ask(word, "serve", maker, cluster, a_refused_pod("serve-w", an_owner(child, "serve-x", version)))
    assert list_waiting(answer) == ["serve-w"]


def with_status(version: str, kind: str, spec: Json, **status: Any) -> Json:
    return a_workload(version, kind, "x", spec, status=status)


LOCKED = with_status(ARGO, "Workflow", {}, phase="Pending", message="Waiting for ml/ConfigMap/sem/gpu lock")
REFUSED = with_status(
    SPARK, "SparkApplication", {},
    applicationState={"state": "SUBMISSION_FAILED", "errorMessage": 'pods "x" is forbidden: exceeded quota: q'},
)  # fmt: skip


@pytest.mark.parametrize(
    ("word", "workload", "words"),
    [
        ("workflow", LOCKED, "its status says: Waiting for ml/ConfigMap/sem/gpu lock (Pending)"),
        ("sparkapp", REFUSED, 'its status says: pods "x" is forbidden: exceeded quota: q (SUBMISSION_FAILED)'),
    ],
)
def test_a_workload_without_pods_is_answered_by_its_own_status(word: str, workload: Json, words: str) -> None:
    answer = ask(word, "x", workload)
    assert words in answer.sentence.en
    assert [group.obstacle.code for group in answer.groups if group.obstacle] == ["WorkloadSays"]


@pytest.mark.parametrize(
    ("workload", "waits"),
    [
        (LOCKED, True),
        (with_status(ARGO, "Workflow", {}, phase="Running"), False),
        (with_status(ARGO, "Workflow", {}, phase="Succeeded"), False),
        (with_status(RAY, "RayJob", {}, jobDeploymentStatus="Complete"), False),
        (with_status(RAY, "RayJob", {"suspend": True}, jobDeploymentStatus="Suspended"), True),
        (with_status(SPARK, "SparkApplication", {}, applicationState={"state": "COMPLETED"}), False),
        (with_status(LEADER_WORKER_SET, "LeaderWorkerSet", {"replicas": 0}), False),
    ],
)
def test_what_has_ended_runs_or_wants_nothing_is_not_listed_as_waiting(workload: Json, waits: bool) -> None:
    case = build_case([workload], (), NOW)
    assert bool(list_without_pods(case.objects)) is waits


def test_the_kinds_between_a_workload_and_its_pods_are_listed_where_the_cluster_has_them() -> None:
    versions = GroupVersions({"ray.io": ("v1",), "batch": ("v1",)})
    listed = list_family_kinds(CaseWorkload("RayJob.ray.io", "ml", "x"), {}, versions)
    paths = [entry.path for entry in listed]
    assert "/apis/ray.io/v1/namespaces/ml/rayclusters" in paths
    assert "/apis/batch/v1/namespaces/ml/jobs" in paths
