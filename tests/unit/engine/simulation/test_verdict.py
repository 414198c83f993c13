"""Pods judged as the cluster would: filters first, then the devices of the nodes that pass."""

from typing import Any

import pytest

from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, list_notes, simulate

Object = dict[str, Any]


def with_cordon(node: Object) -> Object:
    node["spec"]["unschedulable"] = True
    return node


def test_closed_nodes_are_not_offered_and_are_named_with_their_reason() -> None:
    nodes = [with_cordon(a_gpu_node("n0")), a_gpu_node("n1", taints=[a_taint("pool", "infer")]), a_gpu_node("n2")]
    answer = simulate(a_gpu_pod(gpu=1, gpumem=4000), *nodes)
    assert (answer["state"], answer["node"], answer["fit_nodes"], answer["nodes"]) == ("fits", "n2", 1, 3)
    assert [group["sentence"]["en"] for group in answer["filtered"]] == [
        "1 of 3 nodes is cordoned: n0.",
        "1 of 3 nodes has a taint that the pod does not tolerate: pool=infer:NoSchedule, on n1.",
    ]
    assert [device["uuid"] for device in answer["devices"] if device["verdict"] == "picked"] == ["GPU-n2-0"]


def test_a_pod_that_no_node_lets_in_waits_though_its_devices_are_free() -> None:
    answer = simulate(a_gpu_pod(), *(a_gpu_node(f"n{n}", taints=[a_taint("pool", "infer")]) for n in range(3)))
    assert (answer["state"], answer["node"], answer["schedulerlog"]) == ("refused", None, None)
    assert answer["diagnosis"]["obstacle"]["code"] == "TaintNotTolerated"
    assert answer["sentence"]["en"].startswith("3 of 3 nodes have a taint")


def test_cpu_counts_next_to_devices_and_device_resources_are_the_extenders() -> None:
    pod = a_gpu_pod(gpu=1, gpumem=1000)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "16"}
    answer = simulate(pod, a_gpu_node("n1"))
    assert answer["diagnosis"]["obstacle"]["code"] == "ResourceNeverEnough"
    assert "asks for 16 cpu" in answer["sentence"]["en"]
    # No node offers gpumem: only the extender counts it.
    assert [group["code"] for group in answer["filtered"]] == ["ResourceNeverEnough"]


def test_devices_that_refuse_are_counted_out_of_all_nodes() -> None:
    nodes = [a_gpu_node("n0", taints=[a_taint("pool")]), a_gpu_node("n1")]
    answer = simulate(a_gpu_pod(gpu=1, gpumem=30000), *nodes)
    assert answer["sentence"]["en"] == "1 of 2 nodes lacks memory: 30,000 MiB asked."
    assert [other["code"] for other in answer["diagnosis"]["other_obstacles"]] == ["TaintNotTolerated"]


def test_a_pod_without_devices_is_judged_by_the_filters() -> None:
    pod = a_pod(cpu="6")
    answer = simulate(pod, a_node("n1"), a_node("n2", cpu="4"))
    assert (answer["node"], answer["state"]) == ("n1", "fits")
    assert simulate(a_pod(cpu="9"), a_node("n1"))["state"] == "refused"


def test_a_cluster_without_hami_counts_the_resource_itself() -> None:
    holder = a_pod("h1", node="n1", gpu="1")
    answer = simulate(a_gpu_pod(gpu=1), a_node("n1", gpu="1"), holder)
    assert answer["diagnosis"]["obstacle"]["code"] == "ResourceInUse"
    assert "NoHami" in list_notes(answer)


def test_limits_are_requests_too_as_the_api_server_writes_them() -> None:
    pod = a_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/mig-1g.5gb": 1}}
    node = a_gpu_node("n1")
    answer = simulate(pod, node)
    assert answer["diagnosis"]["obstacle"]["code"] == "ResourceNotOffered"
    assert "nvidia.com/gpumem: 5120" in list_notes(answer)["MigResource"]


def test_resources_of_another_device_table_are_unknown_and_not_missing() -> None:
    node = a_gpu_node("n1")
    for amounts in node["status"].values():
        amounts["nvidia.com/vgpu"] = amounts.pop("nvidia.com/gpu")
    answer = simulate(a_gpu_pod(vgpu=1, vgpumem=30000), node)
    assert answer["diagnosis"]["obstacle"]["code"] == "ResourceNotInTable"
    assert "nvidia.com/vgpu, nvidia.com/vgpumem" in answer["sentence"]["en"]
    assert answer["node"] is None


@pytest.mark.parametrize("has_class", [True, False])
def test_claims_from_templates_are_made_and_judged(*, has_class: bool) -> None:
    dra = "resource.k8s.io/v1"
    request = {"name": "r", "exactly": {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1}}
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n2",
        "pool": {"name": "n2", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}],
    }
    objects: list[Object] = [
        a_node("n1"),
        a_node("n2"),
        {"apiVersion": dra, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
        {
            "apiVersion": dra,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    ]
    if has_class:
        objects.append({"apiVersion": dra, "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}})
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    answer = simulate(pod, *objects)
    assert answer["node"] == "n2"
    assert ("ClassesAssumed" in list_notes(answer)) is not has_class


def test_a_claim_of_a_kind_that_the_file_does_not_hold_leaves_the_answer_open() -> None:
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    answer = simulate(pod, a_node("n1"))
    assert answer["state"] == "open"
    assert "PersistentVolumeClaim" in list_notes(answer)["KindsUnread"]


def test_a_pod_that_the_webhook_refuses_is_refused_in_its_words() -> None:
    pod = a_gpu_pod()
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    answer = simulate(pod, a_gpu_node())
    assert answer["diagnosis"]["obstacle"]["code"] == "AdmissionDenied"
    assert "container c is privileged" in answer["sentence"]["en"]
