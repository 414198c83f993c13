"""Pods of files: templates of workloads, several documents, and several pods one after the other."""

from pathlib import Path
from typing import Any

import pytest

from engine.fit.manifests import ManifestError
from engine.simulation.workloads import read_workloads
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, list_notes, simulate

TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000}}}]},
}


def a_workload(kind: str, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"template": TEMPLATE, **spec}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": body}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "team"}, "spec": body}


@pytest.mark.parametrize("kind", ["Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Rollout"])
def test_a_workloads_pod_comes_from_its_template_in_its_namespace(kind: str) -> None:
    answer = simulate(a_workload(kind), a_gpu_node())
    assert (answer["node"], answer["diagnosis"]["namespace"], answer["diagnosis"]["name"]) == ("n1", "team", "w-0")
    assert f"{kind}/w" in list_notes(answer)["FromTemplate"]


def test_one_pod_of_several_replicas_is_placed_unless_more_are_wanted() -> None:
    notes = list_notes(simulate(a_workload("Deployment", replicas=3), a_gpu_node()))
    assert "one of the 3 pods of Deployment/w; `--count 3`" in notes["OneOfWorkload"]


def test_several_pods_are_placed_one_after_the_other() -> None:
    nodes = [a_gpu_node("n1"), a_gpu_node("n2", devices=2)]
    answer = simulate(a_workload("Deployment", replicas=4), *nodes, count=4)
    assert answer["state"] == "refused"
    assert sorted(str(pod["node"]) for pod in answer["pods"]) == ["None", "n1", "n2", "n2"]
    assert [pod["name"] for pod in answer["pods"]] == ["w-0", "w-1", "w-2", "w-3"]
    assert len({uuid for pod in answer["pods"] for uuid in pod["uuids"]}) == 3
    assert answer["pods"][3]["obstacle"] == "CardInsufficientMemory"
    assert answer["diagnosis"]["name"] == "w-3"


def test_what_several_pods_take_of_cpu_counts_for_the_next() -> None:
    pod = a_gpu_pod(gpu=1, gpumem=100)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "5"}
    answer = simulate(pod, a_gpu_node(), count=2)
    assert [pod["obstacle"] for pod in answer["pods"]] == ["", "ResourceInUse"]


def test_a_list_with_other_kinds_gives_its_workloads() -> None:
    text = b"""
apiVersion: v1
kind: Service
metadata: {name: s}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: n}, spec: {containers: [{name: c}]}}
"""
    workloads = read_workloads(text, Path("f"), "mine")
    assert [workload.pod["metadata"]["namespace"] for workload in workloads] == ["mine", "n"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{kind: Service, metadata: {name: s}}", "f: describes 0 pods in 1 object, write an object of kind Pod, Job"),
        (b"[]", "f:1: is no Kubernetes object"),
        (b"{kind: Job, spec: {template: {spec: {containers: []}}}}", "f:1: the Job has no metadata.name"),
        (b"{kind: Pod, metadata: {name: p}, spec: {containers: [3]}}", "a container is the number 3"),
    ],
)
def test_a_file_without_a_usable_pod_names_the_mistake(text: bytes, problem: str) -> None:
    with pytest.raises(ManifestError) as error:
        read_workloads(text, Path("f"))
    assert problem in str(error.value)


def test_a_pod_of_the_cluster_is_judged_as_if_it_were_made_again() -> None:
    pod = a_gpu_pod(gpu=1, gpumem=20000)
    pod["spec"]["nodeName"] = "n1"
    pod["metadata"]["annotations"] = {
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-devices-allocated": "GPU-n1-0,NVIDIA,20000,0:;",
    }
    running = pod | {"status": {"phase": "Running"}}
    answer = simulate(running, a_gpu_node(), running)
    assert (answer["node"], "on node n1 now" in list_notes(answer)["JudgedAgain"]) == ("n1", True)
