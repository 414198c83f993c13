"""Quotas that count a workload's own object, and quotas of classes, in the notes of a simulation."""

import pytest

from tests.support.builders.claims import a_class
from tests.support.builders.cluster import Object, a_node, a_pod
from tests.support.builders.simulations import list_notes, simulate


def a_workload(kind: str, version: str) -> Object:
    template = {"spec": a_pod(cpu="1")["spec"]}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "train", "namespace": "default"},
            "spec": {"template": template}}  # fmt: skip


def a_quota(entry: str, hard: str, used: str) -> Object:
    metadata = {"name": "team", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {entry: hard}},
            "status": {"used": {entry: used}}}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "version", "entry"),
    [
        ("Job", "batch/v1", "count/jobs.batch"),
        ("Deployment", "apps/v1", "count/deployments.apps"),
        ("StatefulSet", "apps/v1", "count/statefulsets.apps"),
        ("ReplicationController", "v1", "replicationcontrollers"),
    ],
)
def test_a_full_quota_of_the_workload_s_kind_is_named(kind: str, version: str, entry: str) -> None:
    workload = a_workload(kind, version)
    assert list_notes(simulate(workload, a_node("n1"), a_quota(entry, "4", "4")))["ObjectQuotaFull"] == (
        f"Quota team of namespace default allows 4 {entry} and 4 are used: the API server would refuse to create "
        f"{kind}/train itself, before any pod of it, unless it exists already."
    )
    assert "ObjectQuotaFull" not in list_notes(simulate(workload, a_node("n1"), a_quota(entry, "4", "3")))
    assert "ObjectQuotaFull" not in list_notes(simulate(a_pod(cpu="1"), a_node("n1"), a_quota(entry, "4", "4")))


def test_a_note_names_a_quota_of_the_class_that_serves_a_resource() -> None:
    pod = a_pod(cpu="1")
    pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    served = a_class(name="big", extendedResourceName="example.com/gpu")
    quota = a_quota("big.deviceclass.resource.k8s.io/devices", "4", "4")
    note = list_notes(simulate(pod, a_node("n1"), served, quota))["ClassQuotaNotJudged"]
    assert "a claim for example.com/gpu when it binds the pod" in note
    assert "counts devices of class big" in note
    other = a_quota("small.deviceclass.resource.k8s.io/devices", "4", "4")
    assert "ClassQuotaNotJudged" not in list_notes(simulate(pod, a_node("n1"), served, other))
