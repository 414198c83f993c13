"""Volcano's vGPU devices: registrations, what pods hold and ask for, and which devices their annotations exclude.

The forms are those of Volcano's ``pkg/scheduler/api/devices/nvidia/vgpu`` and of its user guide of vGPUs.
"""

from typing import Any

import pytest

from engine.device_parts.divisible import DevicePart, DivisibleDevice
from engine.device_parts.volcano import list_devices, list_requests, list_shares
from schemas.json_types import Json
from tests.support.builders.divisible_devices import a_node, a_volcano_holder


def register(text: str) -> list[DivisibleDevice]:
    return list(list_devices(a_node("n1", {}, {"volcano.sh/node-vgpu-register": text})))


def test_a_registration_lists_devices_with_slots_memory_model_and_health() -> None:
    first, second = register("GPU-a,10,32768,Tesla V100,true,hami-core:GPU-b,8,16384,Tesla P4,false,mig:")
    assert first == DivisibleDevice("n1", "GPU-a", "GPU-a", "gpu", 0, "Tesla V100", 32_768, 10, numa=0)
    assert second == DivisibleDevice("n1", "GPU-b", "GPU-b", "gpu", 1, "Tesla P4", 16_384, 8, is_healthy=False)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("GPU-a,10,32768,V100,true,hami-core,more:", ["GPU-a"]),
        ("GPU-a,10,32768,V100,true:", []),
        ("GPU-a,ten,32768,V100,true,hami-core:", []),
        ("GPU-a,10,much,V100,true,hami-core:", []),
        ("no registration", []),
        ("", []),
    ],
)
def test_what_is_not_a_registration_lists_no_device(text: str, names: list[str]) -> None:
    assert [device.name for device in register(text)] == names


@pytest.mark.parametrize(("health", "is_healthy"), [("true", True), ("True", True), ("1", True), ("0", False)])
def test_health_is_read_as_go_reads_it(health: str, is_healthy: bool) -> None:
    assert [device.is_healthy for device in register(f"GPU-a,10,1,V100,{health},hami-core:")] == [is_healthy]


@pytest.mark.parametrize(
    ("held", "parts"),
    [
        ("GPU-a,NVIDIA,1000,30:;", [DevicePart("GPU-a", 30, 1000, container="main")]),
        (
            "GPU-a,NVIDIA,1000,30:GPU-b,NVIDIA,2000,0:;",
            [DevicePart("GPU-a", 30, 1000, container="main"), DevicePart("GPU-b", 0, 2000, container="main")],
        ),
        # The second container's; the pod names one only.
        (";GPU-a,NVIDIA,1000,30:;", [DevicePart("GPU-a", 30, 1000)]),
        ("GPU-a,NVIDIA,1000:;", []),
        ("GPU-a,NVIDIA,much,30:;", []),
        ("GPU-a,NVIDIA,1000,all:;", []),
        ("", []),
    ],
)
def test_the_annotation_lists_what_each_container_holds(held: str, parts: list[DevicePart]) -> None:
    assert list(list_shares(a_volcano_holder("p", "n1", held))) == parts


def a_pod(*containers: Json, **annotations: str) -> Json:
    listed = [
        {
            "name": f"c{number}",
            "resources": {"limits": {f"volcano.sh/vgpu-{key}": value for key, value in item.items()}},
        }
        for number, item in enumerate(containers)
    ]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": listed}}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        # Without an amount of memory it is a whole device's.
        ({"number": "1"}, [(1, 0, 0, 100)]),
        ({"number": "2", "cores": "30"}, [(2, 30, 0, 100)]),
        ({"number": "1", "memory": "3000"}, [(1, 0, 3000, None)]),
        ({"number": "1", "memory": "0"}, [(1, 0, 0, 100)]),
        ({"number": "1", "memory-percentage": "40"}, [(1, 0, 0, 40)]),
        ({"number": "1", "memory": "3000", "memory-percentage": "40"}, [(1, 0, 3000, 40)]),
        # Memory alone asks for one device.
        ({"memory": "3000"}, [(1, 0, 3000, None)]),
        ({"cores": "30"}, []),
        ({"memory-percentage": "40"}, []),
        ({"number": "0"}, []),
        ({}, []),
    ],
)
def test_a_container_asks_for_a_number_of_devices_and_a_part_of_each(limits: Json, expected: list[Any]) -> None:
    requests = list_requests(a_pod(limits))
    assert [(item.count, item.cores_percent, item.memory_mib, item.memory_percent) for item in requests] == expected
    for request in requests:
        assert (request.kind, request.is_health_checked, request.is_alone_when_whole) == ("gpu", False, True)


def test_each_container_asks_for_devices_of_its_own() -> None:
    assert [item.count for item in list_requests(a_pod({"number": "1"}, {}, {"number": "3"}))] == [1, 3]


DEVICE = DivisibleDevice("n1", "GPU-a", "GPU-a", model="NVIDIA-Tesla V100", memory_mib=32_768, slots=10)
USE_TYPE, NO_USE_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_USE_UUID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({}, None),
        ({USE_UUID: "GPU-b, GPU-a"}, None),
        ({USE_UUID: "GPU-b"}, "CardUuidMismatch"),
        ({NO_USE_UUID: "GPU-a"}, "CardUuidMismatch"),
        ({NO_USE_UUID: "GPU-b"}, None),
        ({USE_TYPE: "v100"}, None),
        ({USE_TYPE: "P4,V100"}, None),
        ({USE_TYPE: "P4"}, "CardTypeMismatch"),
        ({NO_USE_TYPE: "V100"}, "CardTypeMismatch"),
        ({NO_USE_TYPE: "P4"}, None),
        # Excluded models count only where none are named.
        ({USE_TYPE: "V100", NO_USE_TYPE: "V100"}, None),
        ({USE_UUID: "GPU-b", USE_TYPE: "P4"}, "CardUuidMismatch"),
        ({USE_UUID: " , "}, None),
    ],
)
def test_annotations_of_a_pod_choose_devices(annotations: dict[str, str], reason: str | None) -> None:
    (request,) = list_requests(a_pod({"number": "1"}, **annotations))
    assert request.find_mismatch(DEVICE) == reason
    assert request.find_reason(DEVICE) == reason
