"""Annotations that no scheduler wrote, by the devices that the pod requests."""

from typing import Any

import pytest

from engine.fit.devices.pod_usage import explain_overclaim
from engine.hami.vendors import NVIDIA


def a_pod(devices: str, requested: int) -> dict[str, Any]:
    annotations = {"hami.io/vgpu-node": "node1", "hami.io/vgpu-devices-allocated": devices}
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": requested}}}
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("devices", "requested", "cause"),
    [
        ("GPU-0,NVIDIA,100,10:;", 1, ""),
        ("GPU-0,NVIDIA,100,10:GPU-1,NVIDIA,100,10:;", 2, ""),
        ("GPU-0,NVIDIA,0,0:;", 1, ""),
        ("GPU-0,NVIDIA,100,10:GPU-1,NVIDIA,100,10:;", 1, "it names 2 devices of NVIDIA, the pod asks for 1"),
        ("GPU-0,NVIDIA,-1,10:;", 1, "an amount is negative"),
        ("GPU-0,NVIDIA,100,-1:;", 1, "an amount is negative"),
    ],
)
def test_a_pod_may_hold_as_many_devices_as_it_requests(devices: str, requested: int, cause: str) -> None:
    assert explain_overclaim(a_pod(devices, requested), (NVIDIA,)) == cause


def build_container(amounts: dict[str, str]) -> dict[str, Any]:
    return {"resources": {kind: {"nvidia.com/gpu": count} for kind, count in amounts.items()}}


ONE_DEVICE = "GPU-0,NVIDIA,100,10:;"
BOTH = "GPU-0,NVIDIA,100,10:;GPU-1,NVIDIA,100,10:;"


@pytest.mark.parametrize(
    ("devices", "spec", "cause"),
    [
        # Init containers request too; a limit hides the request of the same resource.
        (BOTH, {"initContainers": [{"requests": "1"}], "containers": [{"limits": "1"}]}, ""),
        (BOTH, {"containers": [{"limits": "1", "requests": "2"}]}, "it names 2 devices of NVIDIA, the pod asks for 1"),
        (BOTH, {"containers": [{"requests": "2"}]}, ""),
        (ONE_DEVICE, {"containers": [{"limits": "many"}]}, "it names 1 devices of NVIDIA, the pod asks for 0"),
        (ONE_DEVICE, {"containers": [{}]}, "it names 1 devices of NVIDIA, the pod asks for 0"),
        (ONE_DEVICE, {}, "it names 1 devices of NVIDIA, the pod asks for 0"),
        ("", {}, ""),
    ],
)
def test_every_container_counts_by_its_limits_or_else_its_requests(
    devices: str, spec: dict[str, Any], cause: str
) -> None:
    pod = a_pod(devices, 0)
    pod["spec"] = {key: [build_container(amounts) for amounts in containers] for key, containers in spec.items()}
    assert explain_overclaim(pod, (NVIDIA,)) == cause


def test_an_annotation_that_cannot_be_read_is_its_own_cause() -> None:
    assert explain_overclaim(a_pod("GPU-0,NVIDIA;", 1), (NVIDIA,))
    unplaced = a_pod("GPU-0,NVIDIA;", 1)
    del unplaced["metadata"]["annotations"]["hami.io/vgpu-node"]
    assert explain_overclaim(unplaced, (NVIDIA,)) == ""
