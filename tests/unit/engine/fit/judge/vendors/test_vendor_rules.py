"""Rules of single vendors, device by device: picks and refusals by the steps of HAMi's sources for Kunlun and Vastai.

AMD's rows state its rules in words of their own: HAMi's later releases ask for cores differently.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState
from engine.fit.judge.vendors.amd import fit_amd
from engine.fit.judge.vendors.kunlun import choose_devices, fit_kunlun
from engine.fit.judge.vendors.vastai import fit_vastai
from engine.hami.vendor_catalog import AMD, KUNLUN, VASTAI, XPU
from tests.support.builders.vendor_devices import a_device, a_node_request, list_picks, list_verdicts

CONFLICT, SHORT = "ExclusiveDeviceAllocateConflict", "AllocatedCardsInsufficientRequest"


def a_die(position: int, board: str, used_slots: int = 0) -> DeviceState:
    return a_device(position, used_slots=used_slots, extra={"DeviceStrategy": "die", "AIC": board})


DIES = [a_die(0, "A"), a_die(1, "B"), a_die(2, "B"), a_die(3, "C")]


@pytest.mark.parametrize(
    ("devices", "count", "is_mutex", "picks"),
    [
        # One die: the first that is tried. Several: those of the board with the most dies first.
        (DIES, 1, False, [0]),
        (DIES, 2, False, [1, 2]),
        (DIES, 3, False, [1, 2, 0]),
        (DIES, 4, False, [0, 1, 2, 3]),
        (DIES, 5, False, []),
        # With mutex, no die of a board of which another die is in use.
        ([a_die(0, "A", used_slots=1), a_die(1, "A"), a_die(2, "B")], 1, True, [2]),
        ([a_die(0, "A", used_slots=1), a_die(1, "A"), a_die(2, "B")], 1, False, [0]),
        # Whole boards are taken in turn.
        ([a_device(0), a_device(1)], 1, False, [0]),
        ([a_device(0, used_slots=1), a_device(1)], 1, True, [1]),
        ([], 1, False, []),
    ],
)
def test_vastai_takes_dies_of_the_fullest_boards(
    devices: Sequence[DeviceState], count: int, is_mutex: bool, picks: list[int]
) -> None:
    fit = fit_vastai(devices, a_node_request(VASTAI, count, is_mutex=is_mutex))
    assert (list_picks(fit), fit.passed) == (picks, bool(picks))


def test_a_sibling_of_a_die_in_use_is_a_conflict() -> None:
    dies = [a_die(0, "A", used_slots=1), a_die(1, "A"), a_die(2, "B")]
    fit = fit_vastai(dies, a_node_request(VASTAI, 2, is_mutex=True))
    assert list_verdicts(fit) == {0: CONFLICT, 1: CONFLICT, 2: SHORT}


@pytest.mark.parametrize(
    ("device", "memory_mib", "cores", "verdict"),
    [
        (a_device(0), 1000, 100, "picked"),
        (a_device(0), 1001, 0, "CardInsufficientMemory"),
        (a_device(0, used_memory=400), 600, 0, "picked"),
        (a_device(0, used_memory=401), 600, 0, "CardInsufficientMemory"),
        # Without memory in the request, all that the device has.
        (a_device(0, used_memory=1), 0, 0, "CardInsufficientMemory"),
        (a_device(0, used_cores=50), 10, 50, "picked"),
        (a_device(0, used_cores=51), 10, 50, "CardInsufficientCore"),
        # At least one compute unit.
        (a_device(0, used_cores=100), 10, 0, "CardInsufficientCore"),
        (a_device(0, total_cores=0), 10, 50, "CardInsufficientCore"),
        (a_device(0, total_slots=2, used_slots=2), 10, 0, "CardTimeSlicingExhausted"),
        (a_device(0, accepts_uuid=False), 10, 0, "CardUuidMismatch"),
    ],
)
def test_amd_counts_compute_units(device: DeviceState, memory_mib: int, cores: int, verdict: str) -> None:
    fit = fit_amd([device], a_node_request(AMD, 1, memory_mib=memory_mib, cores=cores))
    assert list_verdicts(fit) == {0: verdict}


def test_amd_gives_the_units_of_the_percentage_it_is_asked_for() -> None:
    fit = fit_amd([a_device(0, total_cores=304)], a_node_request(AMD, 1, memory_mib=10, cores=50))
    assert [(pick.memory_mib, pick.cores) for pick in fit.picks] == [(10, 152)]


@pytest.mark.parametrize(
    ("count", "free", "indices"),
    [
        # One: the wing with one free device, else three, two, four.
        (1, {0, 4, 5}, [0]),
        (1, {0, 1, 4, 5, 6}, [4]),
        (1, {0, 1, 2, 3, 4, 5}, [4]),
        (1, {0, 1, 2, 3, 4, 5, 6}, [4]),
        (1, {0, 1, 2, 3, 4, 5, 6, 7}, [0]),
        (1, {7}, [7]),
        (1, set(), []),
        # Two of one wing, of the one with the fewest free devices.
        (2, {0, 1, 2, 4, 5}, [4, 5]),
        (2, {0, 1, 2, 4, 5, 6, 7}, [0, 1]),
        # Of both wings only where they are connected.
        (2, {0, 4}, [0, 4]),
        (2, {3, 7}, [3, 7]),
        (2, {0, 5}, []),
        (3, {0, 1, 2, 3}, []),
        (4, {0, 1, 2, 3, 4}, [0, 1, 2, 3]),
        (4, {3, 4, 5, 6, 7}, [4, 5, 6, 7]),
        (4, {0, 1, 4, 5}, [0, 1, 4, 5]),
        (4, {0, 1, 4, 6}, []),
        (8, set(range(8)), [0, 1, 2, 3, 4, 5, 6, 7]),
        (8, set(range(7)), []),
    ],
)
def test_kunlun_keeps_one_wing_whole(count: int, free: set[int], indices: list[int]) -> None:
    listed = [a_device(index) for index in range(8)]
    assert list(choose_devices(listed, count, lambda device: device.index in free)) == indices


def list_eight(**fields: Any) -> list[DeviceState]:
    """List eight devices in the order of trying: HAMi's list is the reverse of it."""
    return [a_device(position, **(fields if position < 7 else {})) for position in reversed(range(8))]


def test_kunlun_gives_whole_devices_that_are_free() -> None:
    fit = fit_kunlun(list_eight(used_slots=1), a_node_request(KUNLUN, 1))
    assert [(pick.device.position, pick.memory_mib, pick.cores) for pick in fit.picks] == [(7, 1000, 100)]
    refused = fit_kunlun(list_eight(used_slots=1), a_node_request(KUNLUN, 2))
    assert set(list_verdicts(refused).values()) == {"NumaNotFit", "not reached"}


@pytest.mark.parametrize(
    ("memory_mib", "fields", "picks"),
    [
        # All parts of a device have one size.
        (250, {"used_slots": 2, "used_memory": 500}, [0]),
        (500, {"used_slots": 2, "used_memory": 500}, [7]),
        (500, {"used_slots": 1, "used_memory": 500}, [0]),
        (500, {"used_slots": 1, "used_memory": 501}, [7]),
        (500, {"gate": 3}, [7]),
    ],
)
def test_kunlun_parts_of_a_device_have_one_size(memory_mib: int, fields: dict[str, Any], picks: list[int]) -> None:
    fit = fit_kunlun(list_eight(**fields), a_node_request(XPU, 1, memory_mib=memory_mib))
    assert list_picks(fit) == picks


def test_kunlun_counts_devices_in_use_as_conflicts_of_mutex_parts() -> None:
    devices = [a_device(position, used_slots=1, used_memory=250) for position in reversed(range(8))]
    fit = fit_kunlun(devices, a_node_request(XPU, 1, memory_mib=250, is_mutex=True))
    assert list(list_verdicts(fit).values()) == [CONFLICT] * 8


@pytest.mark.parametrize(
    ("texts", "picks"),
    [
        ({"hami.io/use-xpu-uuid": "D-3, D-5"}, [3]),
        ({"hami.io/no-use-xpu-uuid": "D-0,D-1, D-2"}, [3]),
        ({"hami.io/use-xpu-uuid": " "}, [0]),
        ({"hami.io/use-xpu-uuid": "D-9"}, []),
    ],
)
def test_kunlun_reads_lists_of_uuids(texts: dict[str, str], picks: list[int]) -> None:
    fit = fit_kunlun(list_eight(), a_node_request(XPU, 1, memory_mib=10, texts=texts))
    assert list_picks(fit) == picks
    if not picks:
        assert list(list_verdicts(fit).values()) == ["CardUuidMismatch"] * 8
