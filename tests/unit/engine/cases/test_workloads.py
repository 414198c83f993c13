"""Workloads with their families and pods, and the number of pods that they want, by the fields of their APIs."""

from collections.abc import Iterable

import pytest

from engine.cases.workloads import (
    CaseWorkload,
    count_wanted,
    counts_pods,
    find_root,
    find_workloads,
    get_state,
    has_ended,
    is_over,
    is_refused,
    is_suspended,
    iterate_owners,
    list_family,
    list_holders,
    list_owners,
    list_pods,
    list_without_pods,
)
from engine.snapshot.case_objects import CaseObjects, collect_objects
from engine.snapshot.kinds import identify
from runtime.kubernetes.object_fields import Fields
from schemas.json_types import Json
from tests.support.builders.workload_objects import a_job, a_pod, a_workload, an_owner

KUEUE, VOLCANO = "kueue.x-k8s.io/v1beta2", "scheduling.volcano.sh/v1beta1"


def get_key(entry: Json) -> CaseWorkload:
    metadata = entry["metadata"]
    return CaseWorkload(identify(entry["apiVersion"], entry["kind"]), metadata["namespace"], metadata["name"])


def count(entry: Json, *children: Json) -> int | None:
    return count_wanted(collect_objects([entry, *children]), get_key(entry), map(get_key, children))


def name_all(keys: Iterable[CaseWorkload]) -> list[str]:
    return list(map(str, keys))


def get_names(pods: Iterable[Fields]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def a_condition(kind: str, status: str = "True") -> Json:
    return {"type": kind, "status": status}


@pytest.mark.parametrize(
    ("spec", "status", "wanted"),
    [
        # Kubernetes: one pod without parallelism, and no more at once than are left to complete.
        ({"parallelism": None}, {}, 1),
        ({"parallelism": 4}, {}, 4),
        ({"parallelism": 4, "completions": 3}, {}, 3),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 5}, 4),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 7}, 3),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 11}, 0),
        ({"parallelism": 0}, {}, 0),
        ({"parallelism": True}, {}, 1),
        ({"parallelism": 4}, {"conditions": [a_condition("Complete")]}, 0),
        ({"parallelism": 4}, {"conditions": [a_condition("Suspended"), a_condition("Failed")]}, 0),
        ({"parallelism": 4}, {"conditions": [a_condition("Complete", "False")]}, 4),
        ({"parallelism": 4}, {"conditions": [a_condition("Suspended")]}, 4),
    ],
)
def test_a_job_wants_what_is_left_of_its_completions_and_no_more_than_its_parallelism(
    spec: Json, status: Json, wanted: int
) -> None:
    job = a_job(**spec) | {"status": status}
    assert count(job) == wanted
    cron = a_workload("batch/v1", "CronJob", "nightly", {})
    other = a_workload("ray.io/v1", "RayCluster", "ray", {"replicas": 9, "template": {}})
    assert count(cron, job, a_job("second", parallelism=2), other) == wanted + 2


@pytest.mark.parametrize(
    ("version", "kind", "spec", "wanted"),
    [
        ("batch.volcano.sh/v1alpha1", "Job", {"tasks": [{"replicas": 3}, {}, {"replicas": 0}]}, 4),
        ("batch.volcano.sh/v1alpha1", "Job", {"tasks": []}, None),
        (KUEUE, "Workload", {"podSets": [{"count": 2}, {"name": "x"}]}, 3),
        (KUEUE, "Workload", {}, None),
        (VOLCANO, "PodGroup", {"minMember": 6}, 6),
        ("scheduling.k8s.io/v1alpha2", "PodGroup", {"schedulingPolicy": {"gang": {"minCount": 5}}}, 5),
        (VOLCANO, "PodGroup", {}, None),
        ("apps/v1", "Deployment", {"replicas": 3, "template": {"x": 1}}, 3),
        ("apps/v1", "Deployment", {"template": {"x": 1}}, 1),
        ("apps/v1", "Deployment", {"replicas": 0, "template": {"x": 1}}, 0),
        # Somebody's copy may lack the template.
        ("apps/v1", "Deployment", {"replicas": 3}, 3),
        ("apps/v1", "ReplicaSet", {"replicas": 3}, 3),
        ("apps/v1", "StatefulSet", {"replicas": 3}, 3),
        ("apps/v1", "StatefulSet", {}, None),
        # Replicas of other kinds are those of groups.
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 3}, None),
        ("apps/v1", "DaemonSet", {"template": {"x": 1}}, None),
        ("batch/v1", "CronJob", {}, 0),
    ],
)
def test_each_kind_counts_its_pods_in_its_own_field(version: str, kind: str, spec: Json, wanted: int | None) -> None:
    assert count(a_workload(version, kind, "x", spec)) == wanted


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"phase": "Pending", "state": "ready"}, "Pending"),
        ({"applicationState": {"state": "SUBMITTED"}}, "SUBMITTED"),
        ({"jobDeploymentStatus": "Initializing", "state": "x"}, "Initializing"),
        ({"state": "ready"}, "ready"),
        ({}, ""),
    ],
)
def test_a_state_stands_in_the_field_of_its_kind(status: Json, state: str) -> None:
    assert get_state({"status": status}) == state
    assert get_state(None) == ""


@pytest.mark.parametrize(
    ("status", "is_at_end"),
    [
        ({"phase": "Succeeded"}, True),
        ({"phase": "Failed"}, True),
        ({"phase": "Error"}, True),
        ({"applicationState": {"state": "COMPLETED"}}, True),
        ({"applicationState": {"state": "SUBMISSION_FAILED"}}, True),
        ({"jobDeploymentStatus": "Complete"}, True),
        ({"phase": "Running"}, False),
        ({"conditions": [a_condition("Complete")]}, True),
        ({"conditions": [a_condition("Running"), a_condition("Completed")]}, True),
        ({"conditions": [a_condition("Succeeded")]}, True),
        ({"conditions": [a_condition("Failed")]}, True),
        ({"conditions": [a_condition("Failed", "False")]}, False),
        ({"conditions": [a_condition("Running")]}, False),
        ({}, False),
    ],
)
def test_a_workload_has_ended_by_its_state_or_its_condition(status: Json, is_at_end: bool) -> None:
    assert is_over({"status": status}) is is_at_end


@pytest.mark.parametrize(
    ("status", "counts"),
    [({"active": 1}, True), ({"replicas": 1}, True), ({"running": 2}, True), ({"pending": 1}, True),
     ({"active": 0, "replicas": 0}, False), ({"ready": 1}, False), ({"active": True}, False), ({}, False)],
)  # fmt: skip
def test_a_status_counts_pods_in_these_fields(status: Json, counts: bool) -> None:
    assert counts_pods({"status": status}) is counts


@pytest.mark.parametrize(
    ("spec", "is_held"),
    [({"suspend": True}, True), ({"runPolicy": {"suspend": True}}, True), ({"suspend": False}, False),
     ({"suspend": "true"}, False), ({"runPolicy": {"suspend": False}}, False), ({}, False)],
)  # fmt: skip
def test_one_suspended_member_suspends_the_family(spec: Json, is_held: bool) -> None:
    members = [a_job("first", suspend=False), a_workload("kubeflow.org/v1", "PyTorchJob", "x", spec)]
    assert is_suspended(collect_objects(members), map(get_key, members)) is is_held


@pytest.mark.parametrize(
    ("phase", "metadata", "ended"),
    [("Succeeded", {}, True), ("Failed", {}, True), ("Running", {}, False), ("", {}, False),
     ("Running", {"deletionTimestamp": "2026-01-01T12:00:00Z"}, True)],
)  # fmt: skip
def test_a_pod_that_ended_or_is_being_deleted_needs_no_node(phase: str, metadata: Json, ended: bool) -> None:
    assert has_ended({"metadata": metadata, "status": {"phase": phase}}) is ended


@pytest.mark.parametrize(
    ("status", "refused"),
    [({"phase": "Failed", "reason": "Evicted"}, True), ({"phase": "Failed"}, False),
     ({"phase": "Running", "reason": "NodeLost"}, False), ({}, False)],
)  # fmt: skip
def test_a_failed_pod_with_a_reason_was_refused_by_its_node(status: Json, refused: bool) -> None:
    assert is_refused({"status": status}) is refused


def test_a_word_and_a_name_find_workloads_of_one_namespace_or_of_all() -> None:
    far = a_job("train")
    far["metadata"] = {**far["metadata"], "namespace": "far"}
    volcano = a_workload("batch.volcano.sh/v1alpha1", "Job", "train", {})
    objects = collect_objects([a_job("train"), far, a_job("other"), volcano])
    everywhere = find_workloads(objects, "job", "train")
    assert [(key.kind, key.namespace) for key in everywhere] == [
        ("Job.batch", "ml"), ("Job.batch", "far"), ("Job.batch.volcano.sh", "ml"),
    ]  # fmt: skip
    assert [key.namespace for key in find_workloads(objects, "vcjob", "train")] == ["ml"]
    assert [key.kind for key in find_workloads(objects, "job", "train", "far")] == ["Job.batch"]
    assert find_workloads(objects, "deployment", "train") == []


def test_the_controller_is_the_first_owner() -> None:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}, an_owner("Job", "train")]
    entry = {"metadata": {"namespace": "ml", "ownerReferences": owners}}
    assert list_owners(entry, "ml") == [CaseWorkload("Job.batch", "ml", "train"), CaseWorkload("ConfigMap", "ml", "c")]
    assert list_owners(None, "ml") == []


def build_chain() -> CaseObjects:
    """Build a CronJob's Job with a pod, and a Deployment with two ReplicaSets and a pod."""
    cron = a_workload("batch/v1", "CronJob", "nightly", {})
    job = a_workload("batch/v1", "Job", "nightly-1", {}, an_owner("CronJob", "nightly"))
    deployment = a_workload("apps/v1", "Deployment", "web", {"selector": {"matchLabels": {"app": "train"}}})
    sets = [a_workload("apps/v1", "ReplicaSet", f"web-{n}", {}, an_owner("Deployment", "web", "apps/v1")) for n in "ab"]
    pods = [a_pod("nightly-1-x", an_owner("Job", "nightly-1")),
            a_pod("web-b-y", an_owner("ReplicaSet", "web-b", "apps/v1"))]  # fmt: skip
    return collect_objects([cron, job, deployment, *sets, *pods])


def test_owners_lead_from_a_pod_to_the_root_and_families_back() -> None:
    objects = build_chain()
    pod = objects.find("Pod", "nightly-1-x", "ml") or {}
    assert name_all(iterate_owners(objects, pod)) == ["Job/nightly-1", "CronJob/nightly"]
    assert str(find_root(objects, CaseWorkload("ReplicaSet.apps", "ml", "web-a"))) == "Deployment/web"
    assert str(find_root(objects, CaseWorkload("Deployment.apps", "ml", "web"))) == "Deployment/web"
    deployment = CaseWorkload("Deployment.apps", "ml", "web")
    family = list_family(objects, deployment)
    assert name_all(family) == ["Deployment/web", "ReplicaSet/web-a", "ReplicaSet/web-b"]
    pods = list_pods(objects, deployment, family)
    assert get_names(pods) == ["web-b-y"]
    # Without the ReplicaSet between them, by the selector.
    read = collect_objects([entry for entry in objects.iterate_objects() if entry["kind"] != "ReplicaSet"])
    assert [entry["metadata"]["name"] for entry in list_pods(read, deployment, [deployment])] == [
        "nightly-1-x",
        "web-b-y",
    ]


def test_owners_that_own_each_other_end() -> None:
    first = a_workload("batch/v1", "Job", "a", {}, an_owner("Job", "b"))
    second = a_workload("batch/v1", "Job", "b", {}, an_owner("Job", "a"))
    objects = collect_objects([first, second])
    assert len(list(iterate_owners(objects, first))) == 16
    assert name_all(list_family(objects, get_key(first))) == ["Job/a", "Job/b"]


def test_a_holder_belongs_to_what_makes_its_pods() -> None:
    workload = a_workload(KUEUE, "Workload", "w", {}, an_owner("Job", "train"))
    job = a_job()
    assert name_all(list_family(collect_objects([workload, job]), get_key(workload))) == ["Job/train", "Workload/w"]
    # An owner that was not read is no member, and pods never are.
    assert name_all(list_family(collect_objects([workload]), get_key(workload))) == ["Workload/w"]
    of_pod = a_workload(KUEUE, "Workload", "w", {}, an_owner("Pod", "p", "v1"))
    pod = a_pod("p", an_owner("X", "x"))
    assert name_all(list_family(collect_objects([of_pod, pod]), get_key(of_pod))) == ["Workload/w"]
    assert [entry["metadata"]["name"] for entry in list_pods(collect_objects([of_pod, pod]), get_key(of_pod), [])] == [
        "p"
    ]


@pytest.mark.parametrize(
    ("entry", "is_listed"),
    [
        (a_job(), True),
        (a_job(parallelism=0), False),
        (a_job() | {"status": {"active": 1}}, False),
        (a_workload("argoproj.io/v1alpha1", "Workflow", "w", {}), True),
        (a_workload("argoproj.io/v1alpha1", "Workflow", "w", {}, status={"phase": "Running"}), False),
        (a_workload("argoproj.io/v1alpha1", "Workflow", "w", {}, status={"phase": "Pending"}), True),
        (a_workload("argoproj.io/v1alpha1", "Workflow", "w", {}, status={"phase": "Failed"}), False),
        (a_workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "w", {"replicas": 0}), False),
        (a_workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "w", {"replicas": 1}), True),
        # Their pods are those of others.
        (a_workload("batch/v1", "CronJob", "w", {}), False),
        (a_workload(VOLCANO, "PodGroup", "w", {"minMember": 2}), False),
        (a_workload(KUEUE, "Workload", "w", {"podSets": [{}]}), False),
    ],
)
def test_a_workload_that_wants_pods_and_has_none_is_listed(entry: Json, is_listed: bool) -> None:
    assert bool(list_without_pods(collect_objects([entry]))) is is_listed


def test_a_workload_without_pods_is_listed_as_the_owner_of_its_owners() -> None:
    job = a_workload("batch/v1", "Job", "inner", {}, an_owner("JobSet", "outer", "jobset.x-k8s.io/v1alpha2"))
    outer = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "outer", {})
    assert name_all(list_without_pods(collect_objects([job, outer]))) == ["JobSet/outer"]
    # Neither of them is without pods where one of the inner ones has some.
    pod = a_pod("x", an_owner("Job", "inner"))
    assert list_without_pods(collect_objects([job, outer, pod])) == []
    assert name_all(list_without_pods(collect_objects([job, outer, a_pod("x", an_owner("Job", "far"))]))) == [
        "JobSet/outer"
    ]


@pytest.mark.parametrize(
    ("version", "kind", "status", "waits"),
    [
        (KUEUE, "Workload", {"conditions": [a_condition("QuotaReserved", "False")]}, True),
        (KUEUE, "Workload", {"conditions": [a_condition("QuotaReserved"), a_condition("Admitted")]}, False),
        (KUEUE, "Workload", {"conditions": [a_condition("Admitted"), a_condition("Evicted")]}, True),
        (
            KUEUE, "Workload",
            {"conditions": [a_condition("Admitted"), a_condition("Evicted"), a_condition("Requeued")]}, False,
        ),
        (KUEUE, "Workload", {"conditions": [a_condition("Finished"), a_condition("Evicted")]}, False),
        (KUEUE, "Workload", {"conditions": [a_condition("QuotaReserved", "False"), a_condition("Finished")]}, False),
        (KUEUE, "Workload", {"admissionChecks": [{"state": "Ready"}, {"state": "Pending"}]}, True),
        (KUEUE, "Workload", {"admissionChecks": [{"state": "Ready"}, {"state": ""}]}, False),
        (KUEUE, "Workload", {}, False),
        (VOLCANO, "PodGroup", {"phase": "Pending"}, True),
        (VOLCANO, "PodGroup", {"phase": "Running"}, False),
        (VOLCANO, "PodGroup", {"phase": "Inqueue", "conditions": [a_condition("Unschedulable")]}, True),
        (VOLCANO, "PodGroup", {"phase": "Running", "conditions": [a_condition("Scheduled")]}, False),
    ],
)  # fmt: skip
def test_a_workload_or_group_that_waits_is_listed_where_no_pod_was_read(
    version: str, kind: str, status: Json, waits: bool
) -> None:
    holder = a_workload(version, kind, "w", {}, status=status)
    assert bool(list_holders(collect_objects([holder]))) is waits
    assert list_holders(collect_objects([holder, a_pod("x", an_owner("Job", "far"))])) == []
