"""Workloads without pods as the watches show them: when each begins to wait, for what, and when it no longer does."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ingest.workloads.object_store import WorkloadObjects, reduce_object
from ingest.workloads.waiting import PASS_SECONDS, REPEAT_SECONDS, WaitObserver
from schemas.documents.pod_states import derive_state_of_workload
from schemas.events import Owner, WorkloadObserved
from schemas.json_types import Json

NOW = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
FULL = "couldn't assign flavors: insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed"
KUEUE = "kueue.x-k8s.io/v1beta2"


def a_job(name: str = "train", *, suspend: bool = True, **status: Any) -> Json:
    resources = {"limits": {"nvidia.com/gpu": "4"}}
    containers = [{"name": "main", "image": "i", "env": [{"name": "TOKEN", "value": "x"}], "resources": resources}]
    metadata = {
        "name": name, "namespace": "ml", "creationTimestamp": "2026-01-01T12:00:00Z",
        "labels": {"kueue.x-k8s.io/queue-name": "night"},
    }  # fmt: skip
    spec = {"parallelism": 2, "suspend": suspend, "template": {"spec": {"containers": containers}}}
    return {"metadata": metadata, "spec": spec, "status": status}


def a_kueue_workload(*, reserved: str = "False") -> Json:
    condition = {
        "type": "QuotaReserved", "status": reserved, "reason": "WaitingForQuota", "message": FULL,
        "lastTransitionTime": "2026-01-01T12:01:00Z",
    }  # fmt: skip
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    metadata = {"name": "job-train", "namespace": "ml", "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"queueName": "night"}, "status": {"conditions": [condition]}}


def a_pod(name: str = "train-x", phase: str = "Pending") -> Json:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    metadata = {"name": name, "namespace": "ml", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": {"phase": phase}}


class Watched:
    """Objects, and a clock that moves to the next look whenever it is asked for observations."""

    def __init__(self) -> None:
        self.objects = WorkloadObjects()
        self.waiting = WaitObserver(self.objects)
        self.seconds = 0.0

    def look(self, seconds: float = PASS_SECONDS) -> list[WorkloadObserved]:
        self.seconds += seconds
        return self.waiting.observe(NOW + timedelta(seconds=self.seconds), self.seconds)

    def put_job(self, job: Json) -> None:
        self.objects.put("Job.batch", "batch/v1", job)

    def put_workload(self, workload: Json) -> None:
        self.objects.put("Workload.kueue.x-k8s.io", KUEUE, workload)

    def hold(self) -> WorkloadObserved:
        """Hold a Job by a full queue until it is observed."""
        self.put_job(a_job())
        self.put_workload(a_kueue_workload())
        (event,) = [*self.look(), *self.look()]
        return event


def test_a_held_job_is_observed_with_its_obstacle_its_queue_and_the_devices_of_all_its_pods() -> None:
    event = Watched().hold()
    assert event.wait
    assert (event.wait.code, event.queue, event.pods, event.wait.devices) == ("KueueWaitsForQuota", "night", 2, 8)
    assert "nvidia.com/gpu in flavor h100" in event.wait.sentence_en
    assert str(event.workload) == "Job/train"


def test_a_job_that_has_its_pods_a_moment_later_is_never_observed() -> None:
    watched = Watched()
    watched.put_job(a_job(suspend=False))
    assert watched.look() == []
    watched.objects.put_pod(a_pod())
    assert watched.look() == []
    assert watched.look() == []


def test_the_wait_ends_with_the_first_pod() -> None:
    watched = Watched()
    watched.hold()
    watched.objects.put_pod(a_pod())
    (event,) = watched.look()
    assert event.is_over
    assert event.wait is None


def test_a_pod_that_has_succeeded_is_none_that_the_job_has() -> None:
    watched = Watched()
    watched.hold()
    watched.objects.put_pod(a_pod(phase="Succeeded"))
    assert watched.look() == []


def test_the_wait_ends_with_the_job() -> None:
    watched = Watched()
    watched.hold()
    watched.objects.remove("Job.batch", "ml", "train")
    assert [event.is_over for event in watched.look()] == [True]


def test_another_obstacle_is_another_observation_and_the_same_one_is_none() -> None:
    watched = Watched()
    watched.hold()
    watched.put_workload(a_kueue_workload())
    assert watched.look() == []
    watched.put_workload(a_kueue_workload(reserved="True"))
    (event,) = watched.look()
    assert event.wait
    assert event.wait.code == "KueueChecks"


def test_a_wait_is_observed_again_before_lists_forget_it() -> None:
    watched = Watched()
    first = watched.hold()
    (again,) = watched.look(REPEAT_SECONDS)
    assert again.wait == first.wait
    assert again.observed_at > first.observed_at


def test_words_that_refuse_the_pods_are_the_obstacle_of_their_owner() -> None:
    watched = Watched()
    watched.put_job(a_job(suspend=False))
    watched.objects.put_event({
        "metadata": {"name": "e", "namespace": "ml"}, "reason": "FailedCreate", "type": "Warning",
        "regarding": {"kind": "Job", "namespace": "ml", "name": "train"}, "reportingController": "job-controller",
        "note": 'Error creating: pods "train-x" is forbidden: exceeded quota: no-more, requested: pods=1, '
        "used: pods=1, limited: pods=1",
        "eventTime": "2026-01-01T12:01:00.000000Z",
    })  # fmt: skip
    events = [*watched.look(), *watched.look()]
    assert [event.wait.code for event in events if event.wait] == ["QuotaExceeded"]


def a_replica_set(name: str, created: str, replicas: int) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    metadata = {"name": name, "namespace": "ml", "creationTimestamp": created, "ownerReferences": [owner]}
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    return {"metadata": metadata, "spec": {"replicas": replicas, "template": template}}


def test_a_deployment_waits_by_the_replica_set_that_wants_its_pods() -> None:
    """Deployments are not watched: their ReplicaSets name them."""
    watched = Watched()
    for replica_set in (
        a_replica_set("web-1", "2026-01-01T12:00:00Z", 3),
        a_replica_set("web-2", "2026-01-01T12:05:00Z", 0),
    ):
        watched.objects.put("ReplicaSet.apps", "apps/v1", replica_set)
    watched.objects.put_event({
        "metadata": {"name": "e", "namespace": "ml"}, "reason": "FailedCreate", "type": "Warning",
        "regarding": {"kind": "ReplicaSet", "namespace": "ml", "name": "web-1"},
        "reportingController": "replicaset-controller", "eventTime": "2026-01-01T12:01:00.000000Z",
        "note": 'Error creating: admission webhook "rules.example.org" denied the request: no cost center',
    })  # fmt: skip
    (event,) = [*watched.look(), *watched.look()]
    assert event.wait
    assert (event.wait.code, event.wait.layer, event.wait.devices) == ("PodDeniedByRule", "queue", 3)
    assert "no cost center" in event.wait.sentence_en
    assert event.workload == Owner(kind="Deployment", name="web", api_version="apps/v1")
    assert event.created_at == datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    watched.objects.remove("ReplicaSet.apps", "ml", "web-1")
    assert [event.is_over for event in watched.look()] == [True]


def test_templates_are_kept_without_environments_and_not_at_all_where_pods_are_counted() -> None:
    reduced = reduce_object("Job.batch", a_job())
    (container,) = reduced["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    assert "template" not in reduce_object("Job.batch", a_job(active=2))["spec"]


def test_a_workload_without_pods_is_a_row_among_waiting_pods_until_its_wait_is_over() -> None:
    watched = Watched()
    held = derive_state_of_workload(watched.hold())
    assert held
    assert held.id == "default/ml/job/train"
    row = {name: held.fields[name] for name in ("pod", "state", "obstacle", "group", "queue")}
    assert row == {
        "pod": "job/train", "state": "waiting", "obstacle": "KueueWaitsForQuota", "group": "ml/Job/train",
        "queue": "night",
    }  # fmt: skip
    assert held.fields["first_judged_at"] == "2026-01-01T12:00:00.000000Z"
    watched.objects.put_pod(a_pod())
    ended = derive_state_of_workload(watched.look()[0])
    assert ended
    assert (ended.id, ended.fields["state"]) == (held.id, "ended")
    assert ended.version > held.version
