"""Devices of a node with what its pods hold: names, and shares in MiB or in percent of a device's memory."""

from typing import Any

import pytest

from engine.device_parts.divisible import DevicePart, DivisibleDevice, HeldPart
from engine.device_parts.node_devices import find_device, list_node_devices, measure_share, to_registration
from tests.support.builders.divisible_devices import a_device, a_holder

UUID = DivisibleDevice("n1", "GPU-aa", "GPU-aa")
MINOR = DivisibleDevice("n1", "gpu-1", "n1/gpu-1")


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("gpu-1", MINOR),
        ("GPU-aa", UUID),
        # A part that is cut by MIG has the UUID of the device in its name.
        ("MIG-GPU-aa/1/0", UUID),
        # A minor number is a part of other names by accident.
        ("gpu-12", None),
        ("GPU-bb", None),
    ],
)
def test_the_device_of_a_part_has_its_name_or_a_uuid_within_it(name: str, device: DivisibleDevice | None) -> None:
    assert find_device([UUID, MINOR], DevicePart(name)) == device


@pytest.mark.parametrize(
    ("part", "memory_mib"),
    [
        (DevicePart("x", memory_mib=100), 100),
        (DevicePart("x", memory_mib=0), 0),
        (DevicePart("x", memory_mib=100, memory_percent=50), 100),
        (DevicePart("x", memory_percent=25), 2000),
        (DevicePart("x"), None),
    ],
)
def test_a_share_is_measured_in_mib(part: DevicePart, memory_mib: int | None) -> None:
    assert measure_share(part, DivisibleDevice("n1", "x", "x", memory_mib=8000)) == memory_mib


def test_a_percentage_of_a_device_without_memory_is_not_known() -> None:
    part = DevicePart("x", memory_percent=25)
    assert measure_share(part, None) is None
    assert measure_share(part, DivisibleDevice("n1", "x", "x")) is None
    assert measure_share(part, DivisibleDevice("n1", "x", "x", memory_mib=0)) == 0


def allocate(name: str, text: str) -> dict[str, Any]:
    return a_holder(name, "n1", {"scheduling.koordinator.sh/device-allocated": text})


def test_each_device_has_the_parts_of_the_pods_on_its_node() -> None:
    half = '{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory-ratio":"25"}}]}'
    absent = '{"gpu":[{"minor":7,"resources":{"koordinator.sh/gpu-core":"50"}}]}'
    devices = list_node_devices({}, a_device("n1"), [allocate("p", half), allocate("q", half), allocate("r", absent)])
    shares = {device.name: device.shares for device in devices}
    # A quarter of 81,920 MiB.
    parts = tuple(HeldPart("ml", name, 50, 20_480) for name in "pq")
    assert shares == {"gpu-0": (), "gpu-1": parts, "rdma-0": ()}
    assert list_node_devices({}, None, [allocate("p", half)]) == []


def test_a_registration_has_the_columns_of_the_devices() -> None:
    shared = DivisibleDevice("n1", "gpu-1", "n1/gpu-1", index=1, model="A100", memory_mib=81_920, slots=4, numa=1)
    first, second = to_registration([shared, DivisibleDevice("n1", "gpu-2", "n1/gpu-2", is_healthy=False)]).devices
    assert (first.uuid, first.index, first.slots, first.memory_mib) == ("n1/gpu-1", 1, 4, 81_920)
    assert (first.cores, first.model, first.numa, first.is_healthy) == (100, "A100", 1, True)
    # Any number of pods share a device without a limit: one percent for each.
    assert (second.slots, second.memory_mib, second.is_healthy) == (100, 0, False)
