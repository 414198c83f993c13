"""Workloads that make no pods by themselves: schedules, order, selectors, ends, and queues that have not seen them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cases.unmade_causes import list_unmade
from engine.cases.workloads import find_workloads
from engine.diagnosis.layer_waits import find_layer_of_code
from ingest.cases.read_case import ClusterCase, build_case
from ingest.cases.workload_answers import diagnose_workload
from schemas.answers.workloads import WorkloadDiagnosis
from schemas.json_types import Json

NOW = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
STAMP = "2026-01-01T12:00:00Z"


def an_object(version: str, kind: str, name: str, spec: Json, **more: Any) -> Json:
    labels = more.pop("labels", {})
    metadata = {"name": name, "namespace": "ml", "creationTimestamp": STAMP, "labels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def a_cron_job(**spec: Any) -> Json:
    more = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}, **spec}
    return an_object("batch/v1", "CronJob", "nightly", more)


def an_event(kind: str, name: str, reason: str, message: str) -> Json:
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.1", "namespace": "ml"},
            "involvedObject": {"kind": kind, "name": name, "namespace": "ml"}, "reason": reason, "message": message,
            "lastTimestamp": STAMP, "type": "Warning", "source": {"component": "controller"}}  # fmt: skip


def a_pod_of(kind: str, owner: str, name: str, **status: Any) -> Json:
    pod = an_object("v1", "Pod", name, {**TEMPLATE["spec"], "nodeName": "n1"}, status={"phase": "Running", **status})
    pod["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "controller": True}]
    return pod


def build_of(*objects: Json) -> ClusterCase:
    return build_case(objects, (), NOW)


def diagnose(subject: str, *objects: Json) -> WorkloadDiagnosis:
    case = build_of(*objects)
    (key,) = find_workloads(case.objects, *subject.split("/"))
    return diagnose_workload(case, key)


def get_code(answer: WorkloadDiagnosis) -> str:
    obstacle = answer.groups[0].obstacle
    assert obstacle
    return obstacle.code


def test_a_suspended_cron_job_starts_no_jobs() -> None:
    answer = diagnose("cronjob/nightly", a_cron_job(suspend=True))
    assert get_code(answer) == "CronJobSuspended"
    assert answer.sentence.en == (
        "It makes no pods now: CronJob/nightly is suspended (spec.suspend: true), so it starts no Jobs."
    )


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("UnknownTimeZone", 'invalid timeZone: "Europe/Berlinn"', "CronTimeZoneUnknown"),
        ("UnparseableSchedule", "unparseable schedule: every day", "CronScheduleUnreadable"),
        ("JobAlreadyActive", "Not starting job because prior execution is running", "CronJobStillRuns"),
        ("TooManyMissedTimes", "too many missed start times", "CronJobMissed"),
    ],
)
def test_a_cron_job_says_in_its_events_why_it_starts_no_job(reason: str, message: str, code: str) -> None:
    event = an_event("CronJob", "nightly", reason, message)
    answer = diagnose("cronjob/nightly", a_cron_job(timeZone="Europe/Berlinn"), event)
    assert get_code(answer) == code
    assert message in answer.sentence.en


def test_a_cron_job_without_a_problem_wants_no_pods() -> None:
    answer = diagnose("cronjob/nightly", a_cron_job())
    assert (answer.groups, answer.sentence.en) == ([], "It wants no pods now.")


def test_pods_in_order_wait_for_the_first_that_is_not_ready() -> None:
    spec = {"replicas": 3, "podManagementPolicy": "OrderedReady", "template": TEMPLATE}
    waiting = {"name": "main", "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    pod = a_pod_of("StatefulSet", "db", "db-0", containerStatuses=[waiting])
    answer = diagnose("sts/db", an_object("apps/v1", "StatefulSet", "db", spec), pod)
    assert get_code(answer) == "StatefulSetOrder"
    assert "waits until db-0 is ready before it makes the next (main: CrashLoopBackOff, 7 restarts)" in (
        answer.sentence.en
    )


def test_pods_without_an_order_do_not_wait_for_each_other() -> None:
    spec = {"replicas": 3, "podManagementPolicy": "Parallel", "template": TEMPLATE}
    answer = diagnose("sts/db", an_object("apps/v1", "StatefulSet", "db", spec), a_pod_of("StatefulSet", "db", "db-0"))
    assert get_code(answer) == "PodsNotMade"


def test_a_daemon_set_that_matches_no_node_makes_no_pods() -> None:
    spec = {"template": {"spec": {**TEMPLATE["spec"], "nodeSelector": {"gpu": "true"}}}}
    daemons = an_object("apps/v1", "DaemonSet", "dcgm", spec, status={"desiredNumberScheduled": 0})
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"pool": "a"}}, "status": {}}
    answer = diagnose("ds/dcgm", daemons, node)
    assert get_code(answer) == "DaemonSetWithoutNode"
    assert "it selects gpu=true, which 0 of 1 node has" in answer.sentence.en


def test_a_job_that_has_failed_makes_no_more_pods() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit reached",
              "lastTransitionTime": STAMP}  # fmt: skip
    job = an_object("batch/v1", "Job", "train", {"template": TEMPLATE}, status={"conditions": [failed]})
    answer = diagnose("job/train", job)
    assert get_code(answer) == "JobFailed"
    assert "BackoffLimitExceeded: limit reached" in answer.sentence.en


def test_a_job_for_kueue_without_a_workload_sends_to_kueue() -> None:
    spec = {"suspend": True, "template": TEMPLATE}
    job = an_object("batch/v1", "Job", "train", spec, labels={"kueue.x-k8s.io/queue-name": "night"})
    answer = diagnose("job/train", job)
    assert get_code(answer) == "KueueNotSeen"
    assert "suspended for Kueue (queue night), and Kueue has made no Workload" in answer.sentence.en


@pytest.mark.parametrize(
    ("word", "version", "kind", "spec"),
    [
        ("jobset", "jobset.x-k8s.io/v1alpha2", "JobSet",
         {"suspend": True, "replicatedJobs": [{"template": {"spec": {"template": TEMPLATE}}}]}),
        ("raycluster", "ray.io/v1", "RayCluster", {"suspend": True, "workerGroupSpecs": [{"template": TEMPLATE}]}),
        ("pytorchjob", "kubeflow.org/v1", "PyTorchJob",
         {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": {"template": TEMPLATE}}}),
    ],
)  # fmt: skip
def test_every_kind_of_job_that_kueue_holds_is_listed_with_its_queue(
    word: str, version: str, kind: str, spec: Json
) -> None:
    condition = {
        "type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota", "lastTransitionTime": STAMP,
        "message": "couldn't assign flavors to pod set w: insufficient unused quota for nvidia.com/gpu in flavor f, "
                   "4 more needed",
    }  # fmt: skip
    workload = an_object(
        "kueue.x-k8s.io/v1beta2", "Workload", "w", {"queueName": "night", "podSets": [{"name": "w", "count": 2}]},
        status={"conditions": [condition]},
    )  # fmt: skip
    workload["metadata"]["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": "train"}]
    objects = [an_object(version, kind, "train", spec), workload]
    assert [str(key) for key in list_unmade(build_of(*objects).objects)] == [f"{kind}/train"]
    answer = diagnose(f"{word}/train", *objects)
    assert (get_code(answer), answer.wanted) == ("KueueWaitsForQuota", 2)


def test_suspended_cron_jobs_are_listed_only_where_nothing_waits() -> None:
    waiting = an_object("batch/v1", "Job", "train", {"template": TEMPLATE})
    suspended = a_cron_job(suspend=True)
    assert [str(key) for key in list_unmade(build_of(suspended, waiting).objects)] == ["Job/train"]
    assert [str(key) for key in list_unmade(build_of(suspended).objects)] == ["CronJob/nightly"]


@pytest.mark.parametrize(
    ("code", "layer"),
    [("CronTimeZoneUnknown", "queue"), ("StatefulSetOrder", "queue"), ("KueuePreempted", "queue"),
     ("GroupNeverFits", "queue"), ("FlavorWithoutNode", "nodes"), ("DaemonSetWithoutNode", "nodes")],
)  # fmt: skip
def test_each_obstacle_belongs_to_a_layer(code: str, layer: str) -> None:
    assert find_layer_of_code(code) == layer
