"""Enflame's shares (DRS): profiles of slices and memory, and whole devices (GCU), worked out by hand.

A profile ``2g.24gb`` is two slices with 24 GiB. Its cores are its part of the largest one, rounded up.
"""

from typing import Any

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState
from engine.fit.judge.vendors.asking import NodeRequest
from engine.fit.judge.vendors.enflame import fit_drs, fit_gcu
from engine.hami.vendor_catalog import ENFLAME, GCU
from engine.hami.vendors import BY_SPECIFICATION
from tests.support.builders.vendor_devices import a_device, a_node_request, list_picks, list_verdicts

PROFILES = (("1g.6gb", "11"), ("2g.12gb", "12"), ("3g.18gb", "13"), ("6g.42gb", "16"))


def a_drs_device(position: int = 0, **fields: Any) -> DeviceState:
    """A device of six slices and 42 GiB."""
    extra = {"profiles": PROFILES, "maxSlice": 6}
    return a_device(position, **{"extra": extra, "total_memory": 42 * 1024, "total_slots": 6} | fields)


def request_slices(slices: int, count: int = 1) -> NodeRequest:
    return a_node_request(ENFLAME, count, memory_mib=slices)


def request_amounts(memory: int, cores: int = 0) -> NodeRequest:
    return a_node_request(ENFLAME, 1, memory_mib=memory, cores=cores, percent=BY_SPECIFICATION)


@pytest.mark.parametrize(
    ("node_request", "profile", "amounts"),
    [
        # A sixth of the cores is 17 percent, a third 34, a half 50.
        (request_slices(1), ("1g.6gb", "11"), (6 * 1024, 17, 1)),
        (request_slices(2), ("2g.12gb", "12"), (12 * 1024, 34, 2)),
        (request_slices(3), ("3g.18gb", "13"), (18 * 1024, 50, 3)),
        (request_slices(6), ("6g.42gb", "16"), (42 * 1024, 100, 6)),
        (request_slices(4), None, None),
        # By memory and cores the smallest with enough of both.
        (request_amounts(6), ("1g.6gb", "11"), (6 * 1024, 17, 1)),
        (request_amounts(7), ("2g.12gb", "12"), (12 * 1024, 34, 2)),
        (request_amounts(6, cores=17), ("1g.6gb", "11"), (6 * 1024, 17, 1)),
        (request_amounts(6, cores=18), ("2g.12gb", "12"), (12 * 1024, 34, 2)),
        (request_amounts(0, cores=51), ("6g.42gb", "16"), (42 * 1024, 100, 6)),
        (request_amounts(0), ("1g.6gb", "11"), (6 * 1024, 17, 1)),
        (request_amounts(43), None, None),
        (request_amounts(84), None, None),
        # More than twice the largest is meant in MiB, and a begun GiB counts.
        (request_amounts(85), ("1g.6gb", "11"), (6 * 1024, 17, 1)),
        (request_amounts(6 * 1024), ("1g.6gb", "11"), (6 * 1024, 17, 1)),
        (request_amounts(6 * 1024 + 1), ("2g.12gb", "12"), (12 * 1024, 34, 2)),
        (request_amounts(6, cores=101), None, None),
    ],
)
def test_a_node_requestgets_the_smallest_profile_that_suits(
    node_request: NodeRequest, profile: tuple[str, str] | None, amounts: tuple[int, int, int] | None
) -> None:
    fit = fit_drs([a_drs_device(0), a_drs_device(1)], node_request)
    assert fit.passed is (profile is not None)
    if profile is None:
        assert list_verdicts(fit) == {0: "ModeNotFit", 1: "not reached"}
        return
    (pick,) = fit.picks
    assert (pick.profile, (pick.memory_mib, pick.cores, pick.slots)) == (profile, amounts)


@pytest.mark.parametrize(
    ("device", "verdict"),
    [
        (a_drs_device(used_memory=30 * 1024), "picked"),
        (a_drs_device(used_memory=30 * 1024 + 1), "CardInsufficientMemory"),
        (a_drs_device(used_cores=66), "picked"),
        (a_drs_device(used_cores=67), "CardInsufficientCore"),
        # A device that names no cores has enough.
        (a_drs_device(total_cores=0), "picked"),
        (a_drs_device(total_cores=1), "CardInsufficientCore"),
        (a_drs_device(used_slots=6), "CardTimeSlicingExhausted"),
        (a_drs_device(accepts_uuid=False), "CardUuidMismatch"),
        (a_drs_device(gate=3), "CardNotHealth"),
    ],
)
def test_a_device_is_checked_for_the_amounts_of_the_profile(device: DeviceState, verdict: str) -> None:
    assert list_verdicts(fit_drs([device], request_slices(2))) == {0: verdict}


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"profiles": (("0g.6gb", "1"), ("x", "2"), ("1g.0gb", "3")), "maxSlice": 6},
        {"profiles": PROFILES, "maxSlice": 0},
        {"profiles": PROFILES},
    ],
)
def test_a_node_without_readable_profiles_refuses(extra: dict[str, Any]) -> None:
    for request in (request_slices(1), request_amounts(0)):
        assert list_verdicts(fit_drs([a_drs_device(extra=extra)], request)) == {0: "ModeNotFit"}


def test_profiles_are_those_of_all_devices() -> None:
    small = a_drs_device(0, extra={"profiles": PROFILES[:1], "maxSlice": 1})
    # One slice of the larger device's six is a sixth on both.
    fit = fit_drs([small, a_drs_device(1)], request_slices(1, count=2))
    assert [(pick.device.position, pick.cores) for pick in fit.picks] == [(0, 17), (1, 17)]


@pytest.mark.parametrize(
    ("device", "verdict"),
    [
        (a_device(0), "picked"),
        (a_device(0, used_slots=1), "ExclusiveDeviceAllocateConflict"),
        (a_device(0, gate=3), "CardNotHealth"),
        (a_device(0, gate=3, used_slots=1), "CardNotHealth"),
    ],
)
def test_a_whole_device_is_taken_if_it_is_free(device: DeviceState, verdict: str) -> None:
    fit = fit_gcu([device], a_node_request(GCU, 1, memory_mib=100, cores=100))
    assert list_verdicts(fit) == {0: verdict}
    assert [(pick.memory_mib, pick.cores) for pick in fit.picks] == ([(100, 100)] if verdict == "picked" else [])


def test_whole_devices_are_taken_in_turn() -> None:
    devices = [a_device(0, used_slots=1), a_device(1), a_device(2), a_device(3)]
    assert list_picks(fit_gcu(devices, a_node_request(GCU, 2))) == [1, 2]
    assert list_picks(fit_gcu(devices, a_node_request(GCU, 4))) == []
