"""Kueue's Workload of a pod, its queues and the order of those that compete, by the fields of Kueue's API v1beta2."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.kueue_workloads import (
    MAX_COMPETITORS,
    Workload,
    find_workload,
    is_gate,
    list_competitors,
    sort_by_turn,
)
from engine.snapshot.case_objects import CaseObjects, collect_objects
from schemas.json_types import Json
from tests.support.builders.kueue_objects import an_object

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
QUEUE = an_object("LocalQueue", "night", spec={"clusterQueue": "batch"})
CLUSTER_QUEUE = an_object("ClusterQueue", "batch", "")


def a_condition(kind: str, status: str = "True", message: str = "", reason: str = "R", time: str = "") -> Json:
    return {"type": kind, "status": status, "message": message, "reason": reason, "lastTransitionTime": time}


def a_workload(name: str = "w-1", *conditions: Json, namespace: str = "lab", **more: Any) -> Json:
    """A Workload; ``more``: ``queue``, ``owners``, ``admission``, ``created``, and fields of its spec."""
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": more.pop("created", "2026-11-24T08:00:00Z")}
    metadata["ownerReferences"] = more.pop("owners", [])
    status = {"conditions": list(conditions), "admission": more.pop("admission", {})}
    queue = {"queueName": more.pop("queue", "night")}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": queue | more,
        "status": status,
    }  # fmt: skip


def build(entry: Json, *objects: Json) -> Workload:
    """Build the Workload as a pod of its group finds it."""
    workload = find(collect_objects([entry, *objects]), annotations={"kueue.x-k8s.io/workload": "w-1"})
    assert workload
    return workload


def find(objects: CaseObjects | None, name: str = "job-0", **pod: Any) -> Workload | None:
    described = PodOnCluster(Evidence("pod", "p"), **pod)
    return find_workload(DiagnosisFacts("default", "lab", name, NOW, pod=described, objects=objects))


@pytest.mark.parametrize(
    ("gate", "is_kueues"),
    [
        ("kueue.x-k8s.io/admission", True),
        ("kueue.x-k8s.io/topology", True),
        ("example.org/kueue.x-k8s.io", False),
        ("kueue.x-k8s.io.example.org/a", False),
        ("", False),
    ],
)
def test_a_gate_is_kueues_by_its_domain(gate: str, is_kueues: bool) -> None:
    assert is_gate(gate) is is_kueues


@pytest.mark.parametrize(
    ("pod", "is_its"),
    [
        ({"labels": {"kueue.x-k8s.io/pod-group-name": "w-1"}}, True),
        ({"annotations": {"kueue.x-k8s.io/workload": "w-1"}}, True),
        ({"owners": ("Job/train",)}, True),
        ({"owners": ("JobSet/all", "Job/train")}, True),
        ({"labels": {"kueue.x-k8s.io/pod-group-name": "w-2"}}, False),
        ({"owners": ("Job/other",)}, False),
        ({"owners": ("JobSet/train",)}, False),
        ({}, False),
    ],
)
def test_a_workload_is_a_pods_by_its_name_or_its_owner(pod: dict[str, Any], is_its: bool) -> None:
    entry = a_workload(owners=[{"kind": "RayJob", "name": "x"}, {"kind": "Job", "name": "train"}])
    assert (find(collect_objects([entry]), **pod) is not None) is is_its
    # Not that of the same name in another namespace.
    elsewhere = a_workload(namespace="other", owners=[{"kind": "Job", "name": "train"}])
    assert find(collect_objects([elsewhere]), **pod) is None


def test_a_single_pod_owns_its_workload() -> None:
    objects = collect_objects([a_workload(owners=[{"kind": "Pod", "name": "job-0"}])])
    assert find(objects) is not None
    assert find(objects, "job-1") is None
    assert find(None) is None
    assert find_workload(DiagnosisFacts("default", "lab", "job-0", NOW, objects=objects)) is None


@pytest.mark.parametrize(
    ("entry", "objects", "queue"),
    [
        (a_workload(), [QUEUE], "batch"),
        (a_workload(admission={"clusterQueue": "prod"}), [QUEUE], "prod"),
        # Where the LocalQueue was not read, Kueue's words name the queue.
        (a_workload("w-1", a_condition("A"), a_condition("B", message="Quota reserved in ClusterQueue big, wait 3s")),
         [], "big"),
        (a_workload("w-1", a_condition("Admitted", message="Admitted by ClusterQueue big.")), [], "big"),
        (a_workload("w-1", a_condition("B", message="The workload is admitted by ClusterQueue big; ok")), [], "big"),
        (a_workload("w-1", a_condition("QuotaReserved", "False", "ClusterQueue big is inactive")), [], "big"),
        (a_workload("w-1", a_condition("QuotaReserved", "False", "waits")), [], ""),
        (a_workload(queue="day"), [QUEUE], ""),
    ],
)  # fmt: skip
def test_the_cluster_queue_is_that_of_the_admission_the_local_queue_or_kueues_words(
    entry: Json, objects: list[Json], queue: str
) -> None:
    workload = build(entry, *objects, CLUSTER_QUEUE)
    assert workload.cluster_queue == queue
    assert (workload.queue is not None) is (queue == "batch")


@pytest.mark.parametrize(
    ("name", "kind"), [("is_admitted", "Admitted"), ("has_finished", "Finished"), ("has_quota", "QuotaReserved")]
)
def test_a_state_is_the_condition_of_its_type_that_is_true(name: str, kind: str) -> None:
    others = [a_condition(other) for other in ("Admitted", "Finished", "QuotaReserved") if other != kind]
    assert getattr(build(a_workload("w-1", *others, a_condition(kind))), name) is True
    assert getattr(build(a_workload("w-1", *others, a_condition(kind, "False"))), name) is False
    assert getattr(build(a_workload("w-1", *others)), name) is False


@pytest.mark.parametrize(("spec", "is_active"), [({}, True), ({"active": True}, True), ({"active": False}, False)])
def test_only_a_workload_that_is_set_inactive_is(spec: Json, is_active: bool) -> None:
    assert build(a_workload(**spec)).is_active is is_active


def test_a_workload_is_named_by_what_it_was_made_for() -> None:
    owners = [{"kind": "Job", "name": "train"}, {"kind": "Job", "name": "second"}]
    workload = build(a_workload(owners=owners))
    assert (workload.name, workload.namespace, workload.subject) == ("w-1", "lab", "Job/train")
    assert build(a_workload()).subject == "Workload/w-1"


@pytest.mark.parametrize(
    ("spec", "priority"), [({"priority": 7}, 7), ({"priority": -1}, -1), ({"priority": "7"}, 0), ({}, 0)]
)
def test_a_priority_without_a_number_is_zero(spec: Json, priority: int) -> None:
    assert build(a_workload(**spec)).priority == priority


EVICTED = "2026-11-24T08:20:00Z"


@pytest.mark.parametrize(
    ("conditions", "minute"),
    [
        ([], 0),
        # Kueue puts only a Workload whose pods were not ready in time behind the others.
        ([a_condition("Evicted", "True", reason="PodsReadyTimeout", time=EVICTED)], 20),
        ([a_condition("Evicted", "True", reason="Preempted", time=EVICTED)], 0),
        ([a_condition("Evicted", "False", reason="PodsReadyTimeout", time=EVICTED)], 0),
        ([a_condition("Requeued", "True", reason="PodsReadyTimeout", time=EVICTED)], 0),
    ],
)
def test_a_turn_counts_from_the_creation_or_from_the_eviction_for_pods_that_were_not_ready(
    conditions: list[Json], minute: int
) -> None:
    assert build(a_workload("w-1", *conditions)).queued_at == datetime(2026, 11, 24, 8, minute, tzinfo=UTC)


def test_a_workload_without_a_time_is_older_than_all_others() -> None:
    assert build(a_workload(created="")).queued_at < datetime(1971, 1, 1, tzinfo=UTC)


def test_the_order_is_that_of_priorities_then_times_then_names() -> None:
    entries = [
        a_workload("w-1", priority=1, created="2026-11-24T08:05:00Z"),
        a_workload("late", priority=1, created="2026-11-24T08:06:00Z"),
        a_workload("c", priority=1, created="2026-11-24T08:05:00Z"),
        a_workload("urgent", priority=2, created="2026-11-24T08:09:00Z"),
        a_workload("low", created="2026-11-24T08:00:00Z"),
    ]
    workload = build(entries[0], *entries[1:], QUEUE)
    ordered = sort_by_turn(list_competitors(workload))
    assert [entry.name for entry in ordered] == ["urgent", "c", "w-1", "late", "low"]


def test_competitors_are_those_of_the_same_queue_that_have_not_finished() -> None:
    other_queue = an_object("LocalQueue", "day", spec={"clusterQueue": "prod"})
    far_queue = an_object("LocalQueue", "night", "far", spec={"clusterQueue": "batch"})
    entries = [
        a_workload(), a_workload("w-2"), a_workload("done", a_condition("Finished")),
        a_workload("undone", a_condition("Finished", "False")), a_workload("day", queue="day"),
        a_workload("far", namespace="far"), a_workload("lost", namespace="gone"),
    ]  # fmt: skip
    workload = build(entries[0], *entries[1:], QUEUE, other_queue, far_queue)
    assert [entry.name for entry in list_competitors(workload)] == ["w-1", "w-2", "undone", "far"]
    everywhere = [entry.name for entry in list_competitors(workload, everywhere=True)]
    assert everywhere == ["w-1", "w-2", "undone", "day", "far", "lost"]
    assert list_competitors(build(a_workload(queue="none"), a_workload("w-2"))) == []


@pytest.mark.parametrize(("count", "compared"), [(MAX_COMPETITORS, MAX_COMPETITORS), (MAX_COMPETITORS + 1, 0)])
def test_beyond_the_limit_none_is_compared(count: int, compared: int) -> None:
    entries = [a_workload(f"w-{number}") for number in range(1, count + 1)]
    assert len(list_competitors(build(entries[0], *entries[1:], QUEUE))) == compared
