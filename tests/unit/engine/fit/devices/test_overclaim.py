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
