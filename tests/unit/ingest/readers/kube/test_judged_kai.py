"""Refusals of KAI, judged on the cluster's objects: pods with whole devices, and pods with parts of one."""

from typing import Any, Final

import pytest

from schemas.events import AttemptSummarized
from schemas.json_types import Json
from tests.support.builders.api_server_objects import an_event
from tests.support.builders.watched_clusters import WatchedCluster, a_node, a_pod, list_reasons
from tests.support.control_plane.plain_scheduler import list_attempts

GPUS: Final = "node(s) didn't have enough resources: GPUs"


def a_kai_pod(name: str, node: str = "", group: str = "", gpus: int = 0, **annotations: str) -> Json:
    pod = a_pod(name, gpus)
    pod["metadata"] |= {
        "annotations": {key.replace("_", "-"): value for key, value in annotations.items()},
        "labels": {"runai-gpu-group": group} if group else {},
    }
    pod |= {"kind": "Pod"}
    pod["spec"]["schedulerName"] = "kai-scheduler"
    if node:
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
    return pod


def a_shared_node(name: str, fraction: str) -> list[Json]:
    """Build a node with one device of 40,900 MiB, of which a pod has a part."""
    node = a_node(name, 1)
    node["metadata"]["labels"] = {"nvidia.com/gpu.memory": "40900"}
    reservation = a_kai_pod(f"reservation-{name}", name, name, gpus=1)
    reservation["metadata"]["namespace"] = "kai-resource-reservation"
    return [node, reservation, a_kai_pod(f"other-{name}", name, name, gpu_fraction=fraction)]


@pytest.mark.parametrize("annotations", [{"gpu_fraction": "0.5"}, {"gpu_memory": "20000"}])
def test_a_part_of_a_device_gets_no_verdicts_by_whole_devices(annotations: dict[str, Any]) -> None:
    """By whole devices both nodes would pass: what is left of a device stands in annotations that are not kept."""
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", **annotations)
    cluster.put(*a_shared_node("gpu-0", "0.7"), *a_shared_node("gpu-1", "0.6"))
    attempt = read_refusal(cluster, pod, f"2 {GPUS}.")
    assert attempt.reconstruction is None
    assert attempt.refused_nodes == {GPUS: 2}


def test_verdicts_on_whole_devices_name_the_nodes() -> None:
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", gpus=1)
    cluster.put(*a_shared_node("gpu-0", "0.7"), *a_shared_node("gpu-1", "0.6"))
    attempt = read_refusal(cluster, pod, f"2 {GPUS}.")
    assert attempt.scheduler == "kai-scheduler"
    assert list_reasons(attempt) == dict.fromkeys(("gpu-0", "gpu-1"), "Insufficient nvidia.com/gpu")


def read_refusal(cluster: WatchedCluster, pod: Json, message: str) -> AttemptSummarized:
    text = f"no nodes with enough resources were found: {message}"
    event = an_event("Unschedulable", text, scheduler="kai-scheduler", pod="infer-0")
    (attempt,) = list_attempts(cluster.read(("pod", pod), ("event", event)))
    return attempt
