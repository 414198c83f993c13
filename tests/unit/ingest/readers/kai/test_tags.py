"""The lines of the GPU debugging patch: what they check is kept, and what contradicts itself is found."""

from datetime import timedelta

from ingest.lines.blocks import Lines, LogPosition
from ingest.readers.kai import KaiLog
from tests.support.builders.kai_lines import (
    ORIGIN,
    TAGS,
    list_devices,
    list_findings,
    read,
    read_texts,
    summarize_attempts,
)

FILTER = b"[GPU_FILTER] Node <gpu-0>: Filtering GPUs for pod <team-a/%s>, requested gpu-memory: <30000 MB>"
NUMBERS = b"AllocatedMemory=%d ReleasingMemory=0 TotalMemory=40900"
DEVICE = b"[GPU_FILTER] Node <gpu-0>: GPU <%s> UsedMemory=0 " + NUMBERS + b" fits=true"
ALLOCATED = b"[GPU_ALLOCATE] Node <gpu-0>: pod <team-a/%s> isPipelineOnly=false groups=[%s] success=true"


def walk(pod: bytes, groups: dict[bytes, int], taken: bytes = b"") -> list[bytes]:
    """Walk over the devices of gpu-0; ``groups``: the allocated MiB of each."""
    device_lines = [DEVICE % (group, allocated) for group, allocated in groups.items()]
    return [FILTER % pod, *device_lines, ALLOCATED % (pod, taken or b" ".join(groups))]


def test_every_condition_of_the_patch_is_kept_with_its_device() -> None:
    [device] = list_devices(read(read_texts(TAGS)))
    # As the seven lines of the case print them.
    assert device.checks == {
        "fits": True,
        "in_use": True,
        "enough_resources": True,
        "not_all_released": True,
        "enough_idle": False,
        "whole_device": False,
        "allocatable": False,
        "will_be_releasing": True,
        "selected": True,
    }


def test_the_filtered_list_marks_the_devices_that_are_in_it() -> None:
    lines = walk(b"infer-0", {b"grp-0": 0, b"grp-1": 40000}, b"grp-0")
    lines.insert(3, b"[GPU_FILTER] Node <gpu-0>: Filtered GPUs: [grp-0]")
    checks = {device.uuid: device.checks for device in list_devices(read(lines))}
    assert checks["grp-0"] == {"fits": True, "filtered": True, "selected": True}
    assert checks["grp-1"] == {"fits": True, "filtered": False, "selected": False}


def test_a_device_without_a_condition_has_none() -> None:
    lines = [FILTER % b"infer-0", b"[IDLE_CHECK] Node <gpu-0>: GPU <a> Total=40900 Allocated=100 Available=40800"]
    lines.append(b"[IDLE_CHECK] Node <gpu-0>: GPU <b> Total=40900 Allocated=100 EnoughIdle=true")
    assert [(device.uuid, device.checks) for device in list_devices(read(lines))] == [
        ("a", {}),
        ("b", {"enough_idle": True}),
    ]


def test_the_request_has_as_many_devices_as_the_selection_requires() -> None:
    lines = walk(b"infer-0", {b"grp-0": 0, b"grp-1": 0})
    lines.insert(3, b"[GPU_SELECT] Node <gpu-0>: Required device count: 2")
    (attempt,) = summarize_attempts(read(lines))
    assert [request.count for request in attempt.requests] == [2]
    assert attempt.picked_devices == ["grp-0", "grp-1"]


def test_each_of_several_groups_is_held_against_the_request() -> None:
    lines = walk(b"infer-0", {b"grp-0": 0, b"grp-1": 20000})
    lines[2] = lines[2].replace(b"ReleasingMemory=0", b"ReleasingMemory=15000")
    (finding,) = list_findings(read(lines))
    assert (finding.finding, finding.device) == ("ReleasingMemoryCounted", "grp-1")
    assert finding.numbers["memory_available_mib"] == 20900
    assert finding.numbers["memory_available_with_releasing_mib"] == 35900


def test_memory_that_a_session_gave_and_the_next_counts_as_free_is_a_finding() -> None:
    lines = [*walk(b"infer-0", {b"grp-0": 5000}), *walk(b"infer-1", {b"grp-0": 5000})]
    (finding,) = list_findings(read(lines))
    assert (finding.finding, str(finding.pod), finding.device) == ("MemoryReturned", "team-a/infer-1", "grp-0")
    assert finding.numbers == {
        "memory_allocated_expected_mib": 35000,
        "memory_allocated_after_mib": 5000,
        "memory_total_mib": 40900,
    }
    assert [line.partition("]")[0] for line in finding.evidence] == ["[GPU_ALLOCATE", "[GPU_FILTER"]


def test_memory_that_is_still_allocated_in_the_next_session_is_no_finding() -> None:
    lines = [*walk(b"infer-0", {b"grp-0": 5000}), *walk(b"infer-1", {b"grp-0": 35000})]
    assert [finding.finding for finding in list_findings(read(lines))] == []


def test_memory_that_is_free_again_after_more_than_a_minute_is_no_finding() -> None:
    """The pod may have left; the log of the scheduler does not show it."""
    first, second = walk(b"infer-0", {b"grp-0": 5000}), walk(b"infer-1", {b"grp-0": 5000})
    times = [ORIGIN.reference] * len(first) + [ORIGIN.reference + timedelta(seconds=61)] * len(second)
    reader = KaiLog()
    events = [*reader.feed(Lines(ORIGIN, [*first, *second], LogPosition(0, 1), times)), *reader.close()]
    assert list_findings(events) == []
