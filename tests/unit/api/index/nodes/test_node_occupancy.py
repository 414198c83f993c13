"""Pods that hold the devices of a node at one time, and the amounts that they hold."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api.http.cluster import Cluster
from api.index.nodes.node_occupancy import describe_occupancy
from schemas.answers.placements import DeviceRegistered, NodeOccupancy
from schemas.events import DeviceAllocation, PodRef
from schemas.placements import PodPlacement
from tests.support.builders.events import STARTED

NOON = STARTED
HOUR = timedelta(hours=1)


def a_device(uuid: str = "GPU-1", **fields: Any) -> DeviceRegistered:
    plain = {"model": "NVIDIA A100", "mode": "hami-core", "index": 0, "numa": 0, "healthy": True, "cordoned": False}
    numbers = {"memory_mib": 81920, "cores_percent": 100, "slots": 10}
    return DeviceRegistered.model_validate({"uuid": uuid} | plain | numbers | fields)


def an_allocation(uuid: str = "GPU-1", memory_mib: int | None = 1000, **fields: Any) -> DeviceAllocation:
    return DeviceAllocation.model_validate(
        {"uuid": uuid, "container": "main", "memory_mib": memory_mib, "cores_percent": 10} | fields
    )


def a_placement(name: str, *rows: DeviceAllocation, **fields: Any) -> PodPlacement:
    pod = PodRef(namespace="llm", name=name, uid=f"uid-{name}")
    plain = {
        "cluster": "default",
        "id": name,
        "pod": pod,
        "node": "node1",
        "started_at": NOON - HOUR,
        "allocations": rows,
        "phase": "Running",
    }
    return PodPlacement.model_validate(plain | fields)


def describe_noon(
    *placements: PodPlacement, devices: tuple[DeviceRegistered, ...] = (a_device(),), **fields: Any
) -> NodeOccupancy:
    return describe_occupancy(Cluster("default"), "node1", NOON, placements, devices, **fields)


def test_free_are_the_devices_that_a_pod_could_get_whole() -> None:
    devices = (a_device("free"), a_device("held"), a_device("broken", healthy=False), a_device("kept", cordoned=True))
    occupancy = describe_noon(a_placement("a", an_allocation("held")), devices=devices)
    assert [device.cordoned for device in occupancy.devices] == [False, False, False, True]
    assert (occupancy.free_devices, occupancy.cordoned) == (1, None)
    assert describe_noon(devices=devices, cordoned=False).free_devices == 2
    assert describe_noon(devices=devices, cordoned=True).free_devices == 0


def test_a_device_shows_how_much_of_it_which_pod_holds_and_since_when() -> None:
    occupancy = describe_noon(
        a_placement("a", an_allocation(memory_mib=30000)), a_placement("b", an_allocation(memory_mib=20000, slots=2))
    )
    (device,) = occupancy.devices
    assert (device.memory_total_mib, device.memory_held_mib) == (81920, 50000)
    assert (device.cores_total_percent, device.cores_held_percent) == (100, 20)
    assert (device.slots_total, device.slots_held) == (10, 3)
    assert [(holder.name, holder.container, holder.memory_mib, holder.started_at) for holder in device.held_by] == [
        ("a", "main", 30000, "2026-11-21T02:06:23.217054Z"),
        ("b", "main", 20000, "2026-11-21T02:06:23.217054Z"),
    ]
    assert [(pod.name, pod.phase, pod.devices) for pod in occupancy.pods] == [
        ("a", "Running", ["GPU-1"]), ("b", "Running", ["GPU-1"])
    ]  # fmt: skip


def test_a_placement_counts_from_its_start_until_just_before_its_end() -> None:
    beginning, ending = a_placement("beginning", started_at=NOON), a_placement("ending", ended_at=NOON)
    later = a_placement("later", started_at=NOON + timedelta(microseconds=1))
    just = a_placement("just", ended_at=NOON + timedelta(microseconds=1))
    assert [pod.name for pod in describe_noon(beginning, ending, later, just).pods] == ["just", "beginning"]


def test_an_idle_device_and_an_unregistered_one_are_shown_too() -> None:
    occupancy = describe_noon(a_placement("a", an_allocation("GPU-9", model="NVIDIA T4")), devices=(a_device("GPU-0"),))
    idle, unregistered = occupancy.devices
    assert (idle.uuid, idle.memory_held_mib, idle.slots_held, idle.held_by) == ("GPU-0", 0, 0, [])
    assert (unregistered.uuid, unregistered.model, unregistered.memory_total_mib) == ("GPU-9", "NVIDIA T4", None)
    assert (unregistered.healthy, unregistered.memory_held_mib) == (None, 1000)


def test_init_containers_hold_one_after_the_other_and_the_others_together() -> None:
    first, second = (an_allocation(memory_mib=size, container=f"i{size}", init=True) for size in (5000, 3000))
    main, side = an_allocation(memory_mib=1000), an_allocation(memory_mib=2500, container="side")
    assert describe_noon(a_placement("a", first, second, main, side)).devices[0].memory_held_mib == 5000
    assert describe_noon(a_placement("a", second, main, side)).devices[0].memory_held_mib == 3500
    # Two pods at the same time: each may be at its largest init container, so both count.
    assert (
        describe_noon(a_placement("a", first, main), a_placement("b", first, main)).devices[0].memory_held_mib == 10000
    )


def test_an_unknown_amount_makes_the_sum_null() -> None:
    (device,) = describe_noon(
        a_placement("a", an_allocation(memory_mib=None)), a_placement("b", an_allocation(memory_mib=5))
    ).devices
    assert (device.memory_held_mib, device.cores_held_percent) == (None, 20)


def test_one_device_alone_can_be_requested() -> None:
    occupancy = describe_noon(
        a_placement("a", an_allocation("GPU-1")), devices=(a_device("GPU-0"), a_device("GPU-1")), device="GPU-1"
    )
    assert [device.uuid for device in occupancy.devices] == ["GPU-1"]


def test_pods_without_devices_are_listed_too() -> None:
    occupancy = describe_noon(a_placement("web"), devices=())
    assert ([pod.name for pod in occupancy.pods], occupancy.devices) == (["web"], [])


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(1, 3), st.integers(0, 5)), max_size=12))
def test_the_sum_of_a_device_is_that_of_the_pods_that_are_there(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    placements = [
        a_placement(
            f"p{index}",
            an_allocation(f"GPU-{gpu}", memory),
            started_at=NOON + start * HOUR,
            ended_at=NOON + (start + length) * HOUR,
        )
        for index, (start, gpu, length, memory) in enumerate(drawn)
    ]
    expected: dict[str, int] = {}
    for start, gpu, length, memory in drawn:
        if start <= 0 < start + length:
            expected[f"GPU-{gpu}"] = expected.get(f"GPU-{gpu}", 0) + memory
    assert {
        device.uuid: device.memory_held_mib for device in describe_noon(*placements, devices=()).devices
    } == expected
