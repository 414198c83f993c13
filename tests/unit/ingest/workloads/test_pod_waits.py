"""Waiting pods as the watches show them: what holds each, when that changes, and what its attempts already tell."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.snapshot import kinds
from ingest.readers.kube.judged_objects import JudgedObjects
from ingest.readers.kube.reader import KubeEvents
from ingest.readers.kube.refusal_judge import RefusalJudge
from ingest.readers.kube.scheduling_events import SchedulingEvent
from ingest.workloads.object_store import WorkloadObjects
from ingest.workloads.pod_waits import (
    ATTEMPT_SECONDS,
    JUDGED_SECONDS,
    LOOK_SECONDS,
    REPEAT_SECONDS,
    SETTLE_SECONDS,
    PodWaitObserver,
)
from schemas.documents.pod_states import derive_state_after_observation
from schemas.events import AttemptConcluded, PodObserved, PodRef
from schemas.json_types import Json

NOW = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
CREATED = "2026-01-01T12:00:00Z"
CLAIMS = [{"name": "gpu", "resourceClaimName": "gpu-1"}]
GATES = [{"name": "kueue.x-k8s.io/admission"}]
FULL = "couldn't assign flavors: insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed"
RING = {"scheduling.x-k8s.io/pod-group": "ring"}


@pytest.fixture(autouse=True)
def _whole_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that end only when every pod was looked at, on a machine as busy as may be."""
    monkeypatch.setattr("ingest.workloads.pod_waits.TURN_SECONDS", 60)


def a_pod(name: str = "train-0", *, labels: Json | None = None, **fields: Any) -> Json:
    """A waiting pod; ``fields``: those of its spec, ``refusal``: words of its scheduler in the condition."""
    refusal = fields.pop("refusal", "")
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": refusal,
        "lastTransitionTime": "2026-01-01T12:00:02Z",
    }  # fmt: skip
    metadata = {
        "name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": CREATED, "labels": labels or {},
        "resourceVersion": "7",
    }  # fmt: skip
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "main"}], **fields}
    return {"metadata": metadata, "spec": spec, "status": {
        "phase": "Pending", "conditions": [condition] if refusal else [],
    }}  # fmt: skip


def an_event(time: str, note: str, pod: str = "train-0") -> Json:
    return {
        "metadata": {"name": "e", "namespace": "ml"}, "reason": "FailedScheduling", "note": note, "type": "Warning",
        "regarding": {"kind": "Pod", "namespace": "ml", "name": pod, "uid": f"uid-{pod}"}, "eventTime": time,
        "reportingController": "default-scheduler",
    }  # fmt: skip


class Watched:
    """Objects, and a clock that moves when it is asked for observations."""

    def __init__(self) -> None:
        self.objects = WorkloadObjects()
        self.objects.listed = frozenset((kinds.RESOURCE_CLAIM, kinds.CLAIM_TEMPLATE, kinds.DEVICE_CLASS))
        self.objects.unread -= self.objects.listed
        self.judged = JudgedObjects()
        self.judged.find_problem = str
        self.seconds = 0.0
        self.judge = RefusalJudge(self.judged, lambda: NOW + timedelta(seconds=self.seconds))
        self.waiting = PodWaitObserver(self.objects, judge=self.judge)

    def look(self, seconds: float = SETTLE_SECONDS) -> list[PodObserved]:
        self.seconds += seconds
        return self.waiting.observe(NOW + timedelta(seconds=self.seconds), self.seconds)

    def begin(self, *pods: Json) -> list[PodObserved]:
        """Put pods, and look when they are old enough."""
        for pod in pods:
            self.objects.put_pod(pod)
        assert self.look(0) == [], "a pod is looked at when its scheduler has had time to speak"
        return self.look()

    def put_claim(self, name: str = "gpu-1") -> None:
        claim = {"metadata": {"name": name, "namespace": "ml"}, "spec": {"devices": {"requests": []}}}
        self.objects.put(kinds.RESOURCE_CLAIM, "resource.k8s.io/v1", claim)


def list_codes(events: list[PodObserved]) -> list[tuple[str, str, str]]:
    return [(event.pod.name, event.wait.code, event.wait.layer) for event in events if event.wait]


def get_version(event: PodObserved) -> int:
    state = derive_state_after_observation(event, event.wait)
    assert state
    return state.version


def test_a_missing_claim_holds_its_pod_until_somebody_makes_it() -> None:
    watched = Watched()
    (missing,) = watched.begin(a_pod(resourceClaims=CLAIMS))
    assert list_codes([missing]) == [("train-0", "DeviceClaimMissing", "gate")]
    assert watched.look(LOOK_SECONDS) == [], "nothing has changed"
    watched.put_claim("another")
    assert watched.look() == []
    watched.put_claim()
    (free,) = watched.look()
    assert list_codes([free]) == [("train-0", "NotTried", "nodes")]
    assert get_version(free) > get_version(missing)
    assert watched.look(LOOK_SECONDS) == []


def test_the_end_of_an_obstacle_is_left_to_a_later_attempt() -> None:
    watched = Watched()
    watched.begin(a_pod(resourceClaims=CLAIMS))
    watched.put_claim()
    watched.objects.put_event(an_event("2026-01-01T12:10:04Z", "0/2 nodes are available: 2 Insufficient cpu."))
    assert watched.look() == []


class Short:
    """One node, and a pod that asks for more than it has."""

    def __init__(self, refusal: str = "0/1 nodes are available: 1 Insufficient cpu.") -> None:
        self.watched = Watched()
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        self.node = {"metadata": {"name": "n1"}, "status": {"allocatable": amounts, "capacity": amounts}}
        resources = {"requests": {"cpu": "64"}}
        self.pod = a_pod(refusal=refusal, containers=[{"name": "c", "resources": resources}])

    def put_judged(self) -> None:
        self.watched.judged.put(kinds.NODE, "v1", self.node)
        self.watched.judged.put(kinds.POD, "v1", self.pod)

    def refuse(self, seconds: float, *, is_read: bool = True) -> None:
        """Refuse the pod now; ``is_read``: the judge has the objects when the refusal is read."""
        moment, words = NOW + timedelta(seconds=seconds), "0/1 nodes are available: 1 Insufficient cpu."
        self.watched.objects.put_event(an_event(f"{moment:%Y-%m-%dT%H:%M:%SZ}", words))
        ref = PodRef(namespace="ml", name="train-0", uid="uid-train-0")
        refusal = SchedulingEvent("refused", moment, "default-scheduler", ref, words)
        self.watched.judged.find_problem = str if is_read else lambda: "devices have not been listed"
        judged = self.watched.judge.judge(refusal, {"Insufficient cpu": 1}, words)
        self.watched.judged.find_problem = str
        assert (judged is not None) == is_read


def test_a_refusal_that_is_older_than_the_watch_is_judged_on_the_nodes_of_now() -> None:
    """Its record has the scheduler's counts alone, and kube-scheduler tries a pod again after minutes."""
    short = Short()
    watched = short.watched
    short.put_judged()
    (judged,) = watched.begin(short.pod)
    assert list_codes([judged]) == [("train-0", "ResourceNeverEnough", "nodes")]
    assert judged.wait
    assert "the largest node, n1, has 4" in judged.wait.sentence_en
    assert watched.look(LOOK_SECONDS) == [], "nothing has changed"
    # A new try is judged when it is read: its record says the rest.
    short.refuse(watched.seconds)
    assert watched.look() == []
    assert watched.look(LOOK_SECONDS) == []


def test_a_refusal_that_was_read_before_the_objects_is_judged_later() -> None:
    """A watcher that starts reads pods at once, and devices or claims when their list has come."""
    short = Short(refusal="")
    watched = short.watched
    assert watched.begin(short.pod) == []
    short.put_judged()
    short.refuse(watched.seconds, is_read=False)
    assert watched.look() == [], "it may be judged yet"
    (judged,) = watched.look(JUDGED_SECONDS)
    assert list_codes([judged]) == [("train-0", "ResourceNeverEnough", "nodes")]


def test_a_refusal_that_names_no_node_is_judged_too() -> None:
    """Volcano refuses with the state of a group."""
    short = Short(refusal="")
    watched = short.watched
    assert watched.begin(short.pod) == []
    short.put_judged()
    moment = NOW + timedelta(seconds=watched.seconds)
    watched.objects.put_event(an_event(f"{moment:%Y-%m-%dT%H:%M:%SZ}", "1/1 tasks in gang unschedulable"))
    assert watched.look() == []
    assert list_codes(watched.look(JUDGED_SECONDS)) == [("train-0", "ResourceNeverEnough", "nodes")]


def test_an_extender_that_fails_is_not_hidden_behind_the_nodes() -> None:
    short = Short(refusal="")
    watched = short.watched
    reader = KubeEvents(judge=watched.judge)
    assert watched.begin(short.pod) == []
    short.put_judged()
    moment = NOW + timedelta(seconds=watched.seconds)
    words = 'Post "http://10.0.0.9/filter": dial tcp 10.0.0.9:80: connect: connection refused'
    event = an_event(f"{moment:%Y-%m-%dT%H:%M:%SZ}", words)
    watched.objects.put_event(event)
    reader.read_object("event", event, watched.seconds)
    (failed,) = [entry for entry in reader.close() if isinstance(entry, AttemptConcluded)]
    assert failed.error == words
    assert watched.look() == []
    assert watched.look(JUDGED_SECONDS) == []


def test_a_member_that_comes_or_goes_concerns_the_others_of_its_gang() -> None:
    watched = Watched()
    group = {"metadata": {"name": "ring", "namespace": "ml"}, "spec": {"minMember": 3}}
    watched.objects.put("PodGroup.scheduling.x-k8s.io", "scheduling.x-k8s.io/v1alpha1", group)
    events = watched.begin(a_pod("m-0", labels=RING), a_pod("m-1", labels=RING))
    assert list_codes(events) == [("m-0", "GangIncomplete", "gate"), ("m-1", "GangIncomplete", "gate")]
    assert events[0].wait
    assert "2 of 3" in events[0].wait.sentence_en or "2 of its 3" in events[0].wait.sentence_en
    placed = a_pod("m-2", labels=RING, nodeName="n1")
    watched.objects.put_pod(placed)
    assert {event.pod.name for event in watched.look()} == {"m-0", "m-1"}, "three exist"
    watched.objects.remove_pod("ml", "m-2")
    assert ("m-0", "GangIncomplete", "gate") in list_codes(watched.look())


def test_a_workload_of_kueue_says_what_a_gate_waits_for() -> None:
    watched = Watched()
    (held,) = watched.begin(a_pod(schedulingGates=GATES, labels={"kueue.x-k8s.io/queue-name": "night"}))
    assert list_codes([held]) == [("train-0", "KueueHolds", "queue")]
    condition = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota", "message": FULL}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train-0"}
    metadata = {"name": "pod-train-0", "namespace": "ml", "ownerReferences": [owner]}
    workload = {"metadata": metadata, "spec": {"queueName": "night"}, "status": {"conditions": [condition]}}
    watched.objects.put("Workload.kueue.x-k8s.io", "kueue.x-k8s.io/v1beta2", workload)
    (full,) = watched.look()
    assert list_codes([full]) == [("train-0", "KueueWaitsForQuota", "queue")]
    assert full.wait
    assert "nvidia.com/gpu in flavor h100" in full.wait.sentence_en


def test_an_obstacle_that_attempts_record_is_not_observed_again() -> None:
    quotas = "quotaName: vision, runtime: {cpu: 8}, used: {cpu: 8}, pod's request: {cpu: 1}, exceedDimensions: [cpu]"
    words = f"0/1 nodes are available: Insufficient quotas, {quotas}"
    assert Watched().begin(a_pod(refusal=words, schedulerName="koord-scheduler")) == []
    assert Watched().begin(a_pod(refusal="0/2 nodes are available: 2 Insufficient cpu.")) == []


def test_an_attempt_that_says_something_else_does_not_hide_what_holds_the_pod() -> None:
    watched = Watched()
    watched.begin(a_pod(resourceClaims=CLAIMS))
    watched.objects.put_event(an_event("2026-01-01T12:10:04Z", "0/2 nodes are available: 2 Insufficient cpu."))
    assert watched.look() == [], "not after each attempt of a pod that is tried every second"
    watched.objects.put_event(an_event("2026-01-01T12:11:04Z", "0/2 nodes are available: 2 Insufficient cpu."))
    (again,) = watched.look(ATTEMPT_SECONDS)
    assert list_codes([again]) == [("train-0", "DeviceClaimMissing", "gate")]
    assert again.observed_at > datetime(2026, 1, 1, 12, 11, 4, tzinfo=UTC)


def test_an_obstacle_is_repeated_for_readers_that_have_forgotten_it() -> None:
    watched = Watched()
    watched.begin(a_pod(resourceClaims=CLAIMS))
    assert list_codes(watched.look(REPEAT_SECONDS)) == [("train-0", "DeviceClaimMissing", "gate")]


def test_observations_of_the_reader_carry_what_holds_the_pod() -> None:
    watched = Watched()
    (held,) = watched.begin(a_pod(resourceClaims=CLAIMS))
    changed = held.model_copy(update={"wait": None, "scheduler": "other"})
    described = watched.waiting.describe(changed)
    assert isinstance(described, PodObserved)
    assert described.wait == held.wait
    for ended in ({"node": "n1"}, {"deleted": True}, {"phase": "Failed"}, {"pod": held.pod.model_copy(
        update={"uid": "later"})}):  # fmt: skip
        other = changed.model_copy(update=ended)
        assert watched.waiting.describe(other) is other


def test_a_pod_that_has_gone_is_forgotten() -> None:
    watched = Watched()
    watched.begin(a_pod(resourceClaims=CLAIMS))
    watched.objects.remove_pod("ml", "train-0")
    assert watched.look(REPEAT_SECONDS) == []
    assert watched.objects.pods.table == {}


def test_claims_that_are_not_watched_are_not_missing() -> None:
    watched = Watched()
    watched.objects.listed, watched.objects.unread = frozenset(), WorkloadObjects().unread
    assert watched.begin(a_pod(resourceClaims=CLAIMS)) == []


def test_sentences_name_no_pods_of_other_namespaces() -> None:
    watched = Watched()
    refusal = 'GangGroup "ml/ring" gets rejected due to Pod "secret/other-0" is unschedulable'
    labels = {"gang.scheduling.koordinator.sh/name": "ring"}
    for event in watched.begin(a_pod(refusal=refusal, labels=labels, resourceClaims=CLAIMS)):
        assert event.wait
        assert "secret/other-0" not in event.wait.sentence_en


def test_the_marks_of_a_pod_say_more_than_the_words_of_its_attempts() -> None:
    words = "0/1 nodes are available: no nodes assigned to job."
    labels = {"scheduler.slinky.slurm.net/slurm-jobid": "88"}
    pod = a_pod(refusal=words, labels=labels, schedulerName="slurm-bridge-scheduler")
    assert list_codes(Watched().begin(pod)) == [("train-0", "SlurmWaits", "bind")]
