"""Origin of a pod: what Kubernetes, its controllers and the queueing systems write on it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.kubernetes.pod_description import describe_pod
from schemas.events import Owner, PodDescription
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_pod


def an_owned_pod(
    kind: str, name: str, api: str, labels: dict[str, str] | None = None, *, controls: bool = True
) -> Json:
    reference = {"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": controls}
    return a_pod(ownerReferences=[reference], labels=labels or {})


def test_a_pod_of_its_own_has_no_workload() -> None:
    description = describe_pod(a_pod())
    assert description == PodDescription()
    assert description.workload == ""


def test_what_the_object_says_is_kept() -> None:
    pod = a_pod(creationTimestamp="2026-11-21T03:00:00Z", labels={"team": "llm", "app": "x"})
    pod["spec"] |= {"priorityClassName": "high", "priority": 1000, "serviceAccountName": "trainer"}
    assert describe_pod(pod, ("team", "absent")) == PodDescription(
        created_at=datetime(2026, 11, 21, 3, tzinfo=UTC), priority_class="high", priority=1000,
        service_account="trainer", labels={"team": "llm"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        (an_owned_pod("Job", "train", "batch/v1"), "Job/train"),
        (
            an_owned_pod("ReplicaSet", "web-5996b8569d", "apps/v1", {"pod-template-hash": "5996b8569d"}),
            "Deployment/web",
        ),
        (an_owned_pod("ReplicaSet", "by-hand", "apps/v1", {"pod-template-hash": "5996b8569d"}), "ReplicaSet/by-hand"),
        (
            an_owned_pod("ReplicaSet", "-5996b8569d", "apps/v1", {"pod-template-hash": "5996b8569d"}),
            "ReplicaSet/-5996b8569d",
        ),
        (an_owned_pod("ReplicaSet", "old", "apps/v1"), "ReplicaSet/old"),
        (an_owned_pod("PyTorchJob", "bert", "kubeflow.org/v1"), "PyTorchJob/bert"),
        (an_owned_pod("RayCluster", "tune", "ray.io/v1"), "RayCluster/tune"),
        (an_owned_pod("Node", "node1", "v1", controls=False), ""),
    ],
)
def test_the_workload_is_the_owner_that_nothing_else_owns(pod: Json, workload: str) -> None:
    assert describe_pod(pod).workload == workload


def test_the_controller_comes_before_what_is_derived_from_its_name() -> None:
    pod = an_owned_pod("ReplicaSet", "web-5996b8569d", "apps/v1", {"pod-template-hash": "5996b8569d"})
    assert describe_pod(pod).owners == [
        Owner(kind="ReplicaSet", name="web-5996b8569d", api_version="apps/v1"), Owner(kind="Deployment", name="web"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "annotations", "group", "queue"),
    [
        ({"scheduling.x-k8s.io/pod-group": "pg"}, {}, "pg", ""),
        ({}, {"scheduling.k8s.io/group-name": "pg", "scheduling.volcano.sh/queue-name": "q"}, "pg", "q"),
        ({"kai.scheduler/queue": "team-a"}, {"pod-group-name": "pg-1"}, "pg-1", "team-a"),
        ({"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "pg"}, {}, "pg", "q"),
        ({"training.kubeflow.org/job-name": "bert"}, {"scheduling.k8s.io/group-name": "pg-bert"}, "pg-bert", ""),
        ({"training.kubeflow.org/job-name": "bert"}, {}, "bert", ""),
        ({"ray.io/cluster": "tune", "kueue.x-k8s.io/queue-name": ""}, {}, "tune", ""),
    ],
)  # fmt: skip
def test_groups_and_queues_have_the_names_that_the_systems_write(
    labels: dict[str, str], annotations: dict[str, str], group: str, queue: str
) -> None:
    description = describe_pod(a_pod(annotations=annotations, labels=labels))
    assert (description.pod_group, description.queue) == (group, queue)


KEYS = (
    "metadata", "spec", "labels", "annotations", "ownerReferences", "kind", "name", "controller", "priority",
    "creationTimestamp", "pod-template-hash", "kai.scheduler/queue",
)  # fmt: skip
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(KEYS), inner, max_size=4,
    ),
    max_leaves=15,
)  # fmt: skip


@given(ANY_JSON)
def test_any_object_is_described(pod: Any) -> None:
    description = describe_pod(pod, ("team",))
    assert PodDescription.model_validate(description.model_dump()) == description
