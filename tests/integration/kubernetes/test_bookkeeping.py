"""The comparison must find what is wrong, or the tests that use it would prove nothing."""

from typing import Any

from schemas.json_types import Json
from tests.support.control_plane.bookkeeping import (
    Placement,
    PodRecords,
    Share,
    find_overbooked,
    list_astray,
    list_differences,
    parse_shares,
)
from tests.support.control_plane.objects import ALLOCATED, CHOSEN, DEVICE_MEMORY_MIB

HALF = Share("GPU-a", DEVICE_MEMORY_MIB // 2, 50)


def a_bound_pod(name: str = "pod", node: str = "node1", chosen: str = "node1") -> Json:
    annotations = {CHOSEN: chosen, ALLOCATED: "GPU-a,NVIDIA,1000,10:;"}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"nodeName": node}}


def build_records(node: str = "node1", device: str = "GPU-a", **fields: Any) -> PodRecords:
    defaults: dict[str, Any] = {"picked": {"1": {(node, device)}}, "taken": {"1": {device}}}
    return PodRecords(chosen={"1": node}, bound={"1": node}, **(defaults | fields))


def test_a_container_without_devices_leaves_an_empty_place() -> None:
    assert parse_shares(";GPU-b,NVIDIA,20480,20:GPU-a,NVIDIA,1,0:;") == (
        Share("GPU-a", 1, 0),
        Share("GPU-b", 20480, 20),
    )


def test_a_device_that_is_full_is_not_overbooked_and_one_percent_more_is() -> None:
    full = [Placement("node1", (HALF,)), Placement("node1", (HALF,))]
    assert find_overbooked(full) == {}
    assert set(find_overbooked([*full, Placement("node1", (Share("GPU-a", 0, 1),))])) == {"GPU-a"}


def test_an_eleventh_container_is_one_too_many_for_a_device_of_ten_slots() -> None:
    small = Placement("node1", (Share("GPU-a", 1, 1),))
    assert find_overbooked([small] * 10) == {}
    assert find_overbooked([small] * 11)


def test_devices_of_another_node_than_the_pods_are_seen() -> None:
    assert list_astray([a_bound_pod(), a_bound_pod("lost", chosen="node2")]) == ["lost"]


def test_sources_that_agree_have_no_differences() -> None:
    assert list_differences([a_bound_pod()], {"pod": build_records()}) == []


def test_another_node_another_device_and_silence_are_differences() -> None:
    for records in ({"pod": build_records("node2")}, {"pod": build_records(device="GPU-b")}, {}):
        assert list_differences([a_bound_pod()], records)


def test_a_conclusion_that_names_other_devices_than_the_verdicts_is_a_difference() -> None:
    for taken in ({"1": {"GPU-b"}}, {}):
        (difference,) = list_differences([a_bound_pod()], {"pod": build_records(taken=taken)})
        assert difference.startswith("pod holds ['GPU-a'], but its conclusions name ")


def test_a_bound_pod_without_a_recorded_bind_is_a_difference_and_so_is_one_with_two() -> None:
    unrecorded, twice = build_records(), build_records()
    unrecorded.bound.clear()
    twice.bound["2"], twice.picked["2"], twice.taken["2"] = "node1", {("node1", "GPU-a")}, {"GPU-a"}
    for records in (unrecorded, twice):
        assert list_differences([a_bound_pod()], {"pod": records})


def test_a_pod_that_waits_though_its_bind_is_recorded_is_a_difference() -> None:
    waiting = {"metadata": {"name": "pod"}, "spec": {}}
    assert list_differences([waiting], {"pod": build_records()})
