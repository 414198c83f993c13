"""Koordinator's devices, what its annotation says that pods hold of them, and what pods ask for.

The forms are those of Koordinator's API (``device_types.go``, ``device_share.go``) and of its page "Device Scheduling":
``koordinator.sh/gpu: 50`` is half of a GPU, ``nvidia.com/gpu: 2`` are two whole ones, ``gpu.shared`` divides amounts.
"""

import json
from typing import Any

import pytest

from engine.device_parts.divisible import DevicePart, PartRequest
from engine.device_parts.koordinator import list_devices, list_requests, list_shares
from schemas.json_types import Json
from tests.support.builders.divisible_devices import a_device, a_holder

CORE, MEMORY, RATIO = (f"koordinator.sh/{name}" for name in ("gpu-core", "gpu-memory", "gpu-memory-ratio"))
SHARED = "koordinator.sh/gpu.shared"


def test_devices_of_a_node_are_named_by_kind_and_minor_number() -> None:
    listed = list(list_devices(a_device("n1", sick=1)))
    assert [(device.name, device.id, device.kind, device.index) for device in listed] == [
        ("gpu-0", "n1/gpu-0", "gpu", 0), ("gpu-1", "n1/gpu-1", "gpu", 1), ("rdma-0", "n1/rdma-0", "rdma", 0),
    ]  # fmt: skip
    assert [device.is_healthy for device in listed] == [True, False, True]
    # Only GPUs have memory and a model; 80 GiB are 81,920 MiB.
    assert [(device.memory_mib, device.model) for device in listed] == [
        (81_920, "A100-SXM4-80GB"), (81_920, "A100-SXM4-80GB"), (None, "rdma"),
    ]  # fmt: skip


def test_a_device_without_a_minor_number_or_topology_is_the_first_of_numa_node_0() -> None:
    device = a_device("n1")
    device["spec"]["devices"] = [{"type": "gpu", "topology": {"nodeID": 1}}, {"type": "fpga"}]
    gpu, fpga = list_devices(device)
    assert (gpu.name, gpu.numa, gpu.memory_mib, gpu.is_healthy) == ("gpu-0", 1, None, True)
    assert (fpga.name, fpga.numa) == ("fpga-0", 0)


def hold(text: str) -> list[DevicePart]:
    return list(list_shares(a_holder("p", "n1", {"scheduling.koordinator.sh/device-allocated": text})))


@pytest.mark.parametrize(
    ("allocated", "parts"),
    [
        ({"gpu": [{"minor": 1, "resources": {CORE: "50", RATIO: "25"}}]}, [DevicePart("gpu-1", 50, None, 25)]),
        ({"gpu": [{"minor": 0, "resources": {CORE: "50", MEMORY: "8Gi"}}]}, [DevicePart("gpu-0", 50, 8192)]),
        # The names before the rename, under another domain.
        ({"gpu": [{"minor": 0, "resources": {"kubernetes.io/gpu-core": "7"}}]}, [DevicePart("gpu-0", 7)]),
        ({"rdma": [{"minor": 2, "resources": {"koordinator.sh/rdma": "40"}}]}, [DevicePart("rdma-2", 40)]),
        (
            {"gpu": [{"minor": 0, "resources": {CORE: "100"}}, {"resources": {}}], "fpga": [{"minor": 3}]},
            [DevicePart("gpu-0", 100), DevicePart("gpu-0"), DevicePart("fpga-3")],
        ),
        ({}, []),
        ([], []),
    ],
)
def test_the_annotation_lists_the_parts_that_a_pod_holds(allocated: Any, parts: list[DevicePart]) -> None:
    assert hold(json.dumps(allocated)) == parts


@pytest.mark.parametrize("text", ["", "{", "null"])
def test_a_pod_without_a_readable_annotation_holds_nothing(text: str) -> None:
    assert hold(text) == []


def ask(*containers: Json) -> list[PartRequest]:
    """List the requests of a pod whose containers have these limits."""
    listed = [{"name": f"c{number}", "resources": {"limits": limits}} for number, limits in enumerate(containers)]
    return list_requests({"spec": {"containers": listed}})


@pytest.mark.parametrize(
    ("limits", "requests"),
    [
        ({"koordinator.sh/gpu": "50"}, [PartRequest("gpu", 1, 50, 0, 50)]),
        ({"koordinator.sh/gpu": "100"}, [PartRequest("gpu", 1, 100, 0, 100)]),
        ({"koordinator.sh/gpu": "200"}, [PartRequest("gpu", 2, 100, 0, 100)]),
        ({"nvidia.com/gpu": "1"}, [PartRequest("gpu", 1, 100, 0, 100)]),
        ({"nvidia.com/gpu": "3"}, [PartRequest("gpu", 3, 100, 0, 100)]),
        ({"amd.com/gpu": "2"}, [PartRequest("gpu", 2, 100, 0, 100)]),
        ({CORE: "30", RATIO: "40"}, [PartRequest("gpu", 1, 30, 0, 40)]),
        ({CORE: "30", MEMORY: "8Gi"}, [PartRequest("gpu", 1, 30, 8192)]),
        ({MEMORY: "8Gi"}, [PartRequest("gpu", 1, 0, 8192)]),
        ({RATIO: "40"}, [PartRequest("gpu", 1, 0, 0, 40)]),
        ({CORE: "40"}, [PartRequest("gpu", 1, 40)]),
        # Several whole devices by their ratio, and no whole number of them.
        ({CORE: "300", RATIO: "300"}, [PartRequest("gpu", 3, 100, 0, 100)]),
        ({CORE: "250", RATIO: "250"}, [PartRequest("gpu", 1, 250, 0, 250)]),
        # A part of each of two devices.
        ({SHARED: "2", CORE: "100", RATIO: "50"}, [PartRequest("gpu", 2, 50, 0, 25)]),
        ({SHARED: "2", CORE: "100", MEMORY: "8Gi"}, [PartRequest("gpu", 2, 50, 4096)]),
        ({"koordinator.sh/rdma": "50"}, [PartRequest("rdma", 1, 50)]),
        ({"koordinator.sh/rdma": "100"}, [PartRequest("rdma", 1, 100)]),
        ({"koordinator.sh/fpga": "200"}, [PartRequest("fpga", 2, 100)]),
        ({"koordinator.sh/fpga": "250"}, [PartRequest("fpga", 1, 250)]),
        (
            {"koordinator.sh/gpu": "50", "koordinator.sh/rdma": "1"},
            [PartRequest("gpu", 1, 50, 0, 50), PartRequest("rdma", 1, 1)],
        ),
        ({"cpu": "4"}, []),
        ({SHARED: "2"}, []),
        ({"koordinator.sh/gpu": "many"}, []),
    ],
)
def test_a_pod_asks_for_whole_devices_or_for_parts_of_them(limits: Json, requests: list[PartRequest]) -> None:
    assert ask(limits) == requests


def test_requests_of_all_containers_are_met_by_the_same_devices() -> None:
    assert ask({"koordinator.sh/gpu": "30"}, {"koordinator.sh/gpu": "20"}) == [PartRequest("gpu", 1, 50, 0, 50)]
    container = {"resources": {"limits": {CORE: "50"}, "requests": {CORE: "20"}}}
    assert list_requests({"spec": {"containers": [container]}}) == [PartRequest("gpu", 1, 20)]
