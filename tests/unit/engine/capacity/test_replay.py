"""Recorded ranges of time on one and two nodes, with starts and waits worked out by hand."""

import pytest

from engine.capacity.added_nodes import Addition, AdditionError
from engine.capacity.replay import NO_CHANGE, ReplayChange, replay_range
from engine.capacity.replayed_waits import compare_ranges
from engine.hami.vendors import ONLY_NVIDIA
from schemas.answers.replays import Recording, ReplayedWaits
from schemas.events import DeviceAllocation
from tests.support.builders.node_states import write_uuid
from tests.support.builders.recordings import ONE_AFTER_THE_OTHER, SINCE, a_node, a_pod, record


def replay(recording: Recording, change: ReplayChange = NO_CHANGE) -> dict[str, float | None]:
    """Replay; returns the hour of each pod's start."""
    replayed = replay_range(recording, change, ONLY_NVIDIA)
    return {
        uid.removeprefix("uid-"): None if times.start is None else (times.start - SINCE.timestamp()) / 3600
        for uid, times in replayed.pods.items()
    }


def test_each_pod_starts_at_the_end_of_the_one_before() -> None:
    assert replay(ONE_AFTER_THE_OTHER) == {"a": 0, "b": 2, "c": 5}


def test_another_node_starts_the_second_pod_at_once_and_the_third_with_the_first_end() -> None:
    change = ReplayChange(additions=(Addition("n1", 1),))
    # b is on the added node from 0.5 to 3.5; c takes what a leaves at 2.
    assert replay(ONE_AFTER_THE_OTHER, change) == {"a": 0, "b": 0.5, "c": 2}
    answer = compare_ranges(ONE_AFTER_THE_OTHER, change, ONLY_NVIDIA)
    assert (answer.is_reproduced, answer.agreeing, answer.pods) == (True, 3, 3)
    # 1.5 h and 4 h before; 0 h and 1 h after.
    assert answer.recorded == answer.unchanged == ReplayedWaits(started=3, waiting=0, gpu_hours=5.5)
    assert answer.changed == ReplayedWaits(started=3, waiting=0, gpu_hours=1.0)
    assert [(row.workload, row.before_gpu_hours, row.after_gpu_hours) for row in answer.shorter] == [
        ("Pod/c", 4.0, 1.0),
        ("Pod/b", 1.5, 0.0),
    ]
    assert answer.longer == []
    assert answer.sentence.en == (
        "With 1 more node like n1, pods would have waited 1.0 GPU-hours instead of 5.5: 2 workloads wait less, "
        "0 wait longer."
    )


def test_a_node_that_was_not_recorded_cannot_be_added() -> None:
    with pytest.raises(AdditionError, match="the cluster has no node n7"):
        replay(ONE_AFTER_THE_OTHER, ReplayChange(additions=(Addition("n7", 1),)))


def test_a_pod_of_higher_priority_goes_first_and_the_others_in_the_order_in_which_they_came() -> None:
    pods = [
        a_pod("a", 0, 0, 2),
        a_pod("early", 0.5, None, None),
        a_pod("late", 0.6, None, None),
        a_pod("urgent", 1, 2, 3, priority=1),
    ]
    # Early has no recorded end: it holds the device to the end of the range.
    expected = {"a": 0, "urgent": 2, "early": 3, "late": None}
    assert replay(record([a_node("n1")], pods, [["n1"]])) == expected


def test_a_split_count_of_one_keeps_the_second_pod_from_a_shared_device() -> None:
    pods = [a_pod("a", 0, 0, 4, memory=2_000), a_pod("b", 1, 1, 2, memory=2_000)]
    recording = record([a_node("n1")], pods, [["n1"]])
    assert replay(recording) == {"a": 0, "b": 1}
    change = ReplayChange(split=1)
    assert replay(recording, change) == {"a": 0, "b": 4}
    answer = compare_ranges(recording, change, ONLY_NVIDIA)
    assert [(row.workload, row.after_gpu_hours) for row in answer.longer] == [("Pod/b", 3.0)]


SMALL_AND_LARGE = record(
    [a_node("n1"), a_node("n2")],
    [a_pod("s1", 0, 0, 8, memory=3_000), a_pod("s2", 1, 1, 9, memory=3_000), a_pod("large", 2, 2, 3, memory=9_000)],
    [["n1", "n2"]],
)


def test_spread_puts_a_small_pod_on_each_node_and_the_large_one_waits_for_the_first_end() -> None:
    assert replay(SMALL_AND_LARGE) == {"s1": 0, "s2": 1, "large": 2}
    change = ReplayChange(node_policy="spread")
    assert replay(SMALL_AND_LARGE, change) == {"s1": 0, "s2": 1, "large": 8}


def test_a_pods_annotation_counts_before_the_changed_policy() -> None:
    bound = [
        pod.model_copy(update={"constraints": {"hami.io/node-scheduler-policy": "binpack"}})
        for pod in SMALL_AND_LARGE.pods
    ]
    recording = SMALL_AND_LARGE.model_copy(update={"pods": bound})
    assert replay(recording, ReplayChange(node_policy="spread"))["large"] == 2


def test_a_pod_gets_no_node_that_kube_scheduler_did_not_offer() -> None:
    pods = [a_pod("a", 0, 0, 4), a_pod("b", 1, 4, 5)]
    recording = record([a_node("n1"), a_node("n2")], pods, [["n1"]])
    assert replay(recording) == {"a": 0, "b": 4}
    # A node like n2 is not offered to it either.
    assert replay(recording, ReplayChange(additions=(Addition("n2", 1),))) == {"a": 0, "b": 4}


def test_what_started_before_holds_its_devices_and_a_pod_without_a_request_does_from_its_bind() -> None:
    share = DeviceAllocation(uuid=write_uuid("n1", 0), container="main", memory_mib=6_000, cores_percent=0)
    pods = [
        a_pod("before", -3, -2, 1, allocations=[share]),
        a_pod("other", 2, 2, 5, allocations=[share], requests=[], offered=None),
        a_pod("a", 0, 1, 1.5),
        a_pod("b", 3, 5, 6),
    ]
    recording = record([a_node("n1")], pods, [["n1"]])
    assert replay(recording) == {"a": 1, "b": 5}
    notes = [note.en for note in compare_ranges(recording, ReplayChange(split=20), ONLY_NVIDIA).notes]
    assert notes[1].startswith("2 pods hold devices as recorded")


def test_a_pod_that_left_while_it_waited_is_not_started_afterwards() -> None:
    pods = [a_pod("a", 0, 0, 4), a_pod("b", 1, None, 3), a_pod("c", 2, 4, 5)]
    assert replay(record([a_node("n1")], pods, [["n1"]])) == {"a": 0, "b": None, "c": 4}


def test_a_pod_that_was_tried_once_starts_at_that_time_where_another_node_is_free() -> None:
    recording = record([a_node("n1")], [a_pod("a", 0, 0, 4), a_pod("b", 1, None, 1)], [["n1"]])
    assert replay(recording)["b"] is None
    assert replay(recording, ReplayChange(additions=(Addition("n1", 1),)))["b"] == 1


def test_a_node_counts_from_the_time_at_which_it_came() -> None:
    recording = record([a_node("n2"), a_node("n1", 3)], [a_pod("a", 0, 3, 4)], [["n1"]])
    assert replay(recording) == {"a": 3}


def test_a_replay_that_is_not_like_the_record_gives_no_difference() -> None:
    # The record has both wait for an hour although the device was free: something else than devices kept them.
    pods = [a_pod("a", 0, 4, 5), a_pod("b", 5, 9, 10)]
    answer = compare_ranges(record([a_node("n1")], pods, [["n1"]]), ReplayChange(split=2), ONLY_NVIDIA)
    assert (answer.is_reproduced, answer.changed, answer.agreeing) == (False, None, 0)
    assert (answer.shorter, answer.longer) == ([], [])
    assert answer.sentence.en.startswith("The replay without a change is not like the record (0 of 2 pods agree)")


def test_without_a_pod_that_waited_nothing_is_claimed() -> None:
    answer = compare_ranges(record([a_node("n1")], [], []), ReplayChange(split=2), ONLY_NVIDIA)
    assert (answer.changed, answer.sentence.en) == (
        None, "No pod whose request is recorded waited in this time."
    )  # fmt: skip
