"""Refusals of KAI, judged on the cluster's objects: pods with whole devices, and pods with parts of one."""

from typing import Any, Final

import pytest

from engine.diagnosis.refused_nodes import group_refused_nodes
from schemas.events import AttemptSummarized, DevicesJudged, Event, NodeStateChanged
from schemas.json_types import Json
from tests.support.builders.api_server_objects import an_event
from tests.support.builders.watched_clusters import WatchedCluster, a_node, a_pod, list_reasons
from tests.support.control_plane.plain_scheduler import list_attempts

GPUS: Final = "node(s) didn't have enough resources: GPUs"
MEMORY: Final = "node(s) didn't have enough resources: GPU memory"


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


def a_labelled_node(name: str, devices: int, label_mib: int) -> Json:
    node = a_node(name, devices)
    node["metadata"]["labels"] = {"nvidia.com/gpu.memory": str(label_mib)}
    return node


@pytest.mark.parametrize(
    ("annotations", "request_of_pod"),
    [
        ({"gpu_fraction": "0.5"}, (1, None, 50)),
        ({"gpu_memory": "20000"}, (1, 20_000, None)),
    ],
)
def test_a_part_of_a_device_is_judged_by_what_each_device_has_left(
    annotations: dict[str, Any], request_of_pod: tuple[int, int | None, int | None]
) -> None:
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", **annotations)
    cluster.put(*a_shared_node("gpu-0", "0.7"), *a_shared_node("gpu-1", "0.6"))
    attempt = read_refusal(cluster, pod, f"2 {GPUS}.")
    assert list_reasons(attempt) == dict.fromkeys(("gpu-0", "gpu-1"), "1/1 CardInsufficientMemory")
    (request,) = attempt.requests
    assert (request.count, request.memory_mib, request.memory_percent) == request_of_pod
    groups = {group.code: (group.count, sorted(group.names)) for group in group_refused_nodes(attempt)}
    assert groups == {"CardInsufficientMemory": (2, ["gpu-0", "gpu-1"])}


def test_devices_are_published_with_what_pods_have_of_them() -> None:
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", gpu_fraction="0.5")
    cluster.put(*a_shared_node("gpu-0", "0.7"))
    events = read_events(cluster, pod, f"1 {GPUS}.")
    (state,) = (event for event in events if isinstance(event, NodeStateChanged))
    # KAI counts 40,900 of the label's MiB, and seven tenths of them are 28,630.
    assert (state.node, state.uuid, state.memory_used_mib.tolist()) == ("gpu-0", ["gpu-0"], [28_630])
    assert [kind.memory_mib for kind in state.kinds] == [40_900]
    (devices,) = (event for event in events if isinstance(event, DevicesJudged))
    assert [devices.verdicts[code] for code in devices.verdict.tolist()] == ["CardInsufficientMemory"]


def test_two_halves_that_are_used_are_the_recorded_refusal_of_a_larger_share() -> None:
    """KAI v0.13 and v0.17 recorded: two devices with a pod of 0.5 each, and a pod that asks for 0.7."""
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", gpu_fraction="0.7")
    pods = [a_kai_pod(f"busy-{number}", "gpu-0", f"grp-{number}", gpu_fraction="0.5") for number in range(2)]
    held = [a_kai_pod(f"reservation-{number}", "gpu-0", f"grp-{number}", gpus=1) for number in range(2)]
    for reservation in held:
        reservation["metadata"]["namespace"] = "kai-resource-reservation"
    cluster.put(a_labelled_node("gpu-0", 2, 40_960), *pods, *held)
    attempt = read_refusal(cluster, pod, f"1 {GPUS}.")
    assert attempt.reconstruction
    assert (attempt.reconstruction.agreement, attempt.reconstruction.passing_nodes) == ("equal", 0)
    assert list_reasons(attempt) == {"gpu-0": "2/2 CardInsufficientMemory"}


@pytest.mark.parametrize(
    "message",
    [
        # v0.13 and v0.17, recorded: gpu-0 has 2 devices of 40,960 MiB, gpu-1 has 4 of 81,920.
        f"2 {MEMORY}.",
        f"1 {GPUS}. \n2 {MEMORY}.",
    ],
)
def test_devices_that_are_too_small_are_counted_as_either_release_counts_them(message: str) -> None:
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", gpu_memory="100000")
    cluster.put(a_labelled_node("gpu-0", 2, 40_960), a_labelled_node("gpu-1", 4, 81_920))
    attempt = read_refusal(cluster, pod, message)
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "equal"
    assert list_reasons(attempt) == {"gpu-0": "2/2 CardInsufficientMemory", "gpu-1": "4/4 CardInsufficientMemory"}


def test_other_counts_of_a_share_are_called_different() -> None:
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", gpu_memory="100000")
    cluster.put(a_labelled_node("gpu-0", 2, 40_960), a_labelled_node("gpu-1", 4, 81_920))
    attempt = read_refusal(cluster, pod, f"1 {MEMORY}.")
    assert attempt.reconstruction
    assert attempt.reconstruction.agreement == "different"


def test_pods_that_differ_in_their_share_are_judged_apart() -> None:
    cluster = WatchedCluster()
    cluster.put(*a_shared_node("gpu-0", "0.7"))
    refused = read_refusal(cluster, a_kai_pod("infer-0", gpu_fraction="0.5"), f"1 {GPUS}.")
    smaller = read_refusal(cluster, a_kai_pod("infer-0", gpu_fraction="0.2"), f"1 {GPUS}.")
    assert list_reasons(refused) == {"gpu-0": "1/1 CardInsufficientMemory"}
    assert smaller.reconstruction
    assert smaller.reconstruction.passing == ["gpu-0"]


def test_verdicts_on_whole_devices_name_the_nodes() -> None:
    cluster, pod = WatchedCluster(), a_kai_pod("infer-0", gpus=1)
    cluster.put(*a_shared_node("gpu-0", "0.7"), *a_shared_node("gpu-1", "0.6"))
    attempt = read_refusal(cluster, pod, f"2 {GPUS}.")
    assert attempt.scheduler == "kai-scheduler"
    assert list_reasons(attempt) == dict.fromkeys(("gpu-0", "gpu-1"), "Insufficient nvidia.com/gpu")


def read_events(cluster: WatchedCluster, pod: Json, message: str) -> list[Event]:
    text = f"no nodes with enough resources were found: {message}"
    event = an_event("Unschedulable", text, scheduler="kai-scheduler", pod="infer-0")
    return cluster.read(("pod", pod), ("event", event))


def read_refusal(cluster: WatchedCluster, pod: Json, message: str) -> AttemptSummarized:
    (attempt,) = list_attempts(read_events(cluster, pod, message))
    return attempt
