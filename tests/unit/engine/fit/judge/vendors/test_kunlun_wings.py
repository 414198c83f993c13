"""Kunlun's devices in two wings of four: every set of free devices, by the rules of HAMi's topology in words.

Devices of a wing are connected with each other, and each with the one at its place in the other wing. One, two or four
devices come from one wing, the one with the fewest free ones that are enough; a single device rather from a wing with
one free, then with three, two, four. Where no wing has enough, two are a connected pair, and four are two connected
pairs, best with two of the remaining devices connected as well.
"""

from itertools import combinations

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState
from engine.fit.judge.vendors.kunlun import choose_devices

LISTED = [DeviceState(index, f"D-{index}", 0, True, 0, 100, 0, 100, 0, 1000, 0, index=index) for index in range(8)]
LEFT, RIGHT = (0, 1, 2, 3), (4, 5, 6, 7)
SETS = [frozenset(free) for size in range(9) for free in combinations(range(8), size)]
FOURS = [{left, right, left + 4, right + 4} for left, right in ((0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2))]
"""Two connected pairs, in the order in which HAMi tries them."""


def choose(free: frozenset[int], count: int) -> list[int]:
    return list(choose_devices(LISTED, count, lambda device: device.index in free))


def list_wings(free: frozenset[int], count: int) -> list[list[int]]:
    """List the free devices of each wing that has enough of them."""
    wings = [sorted(free.intersection(wing)) for wing in (LEFT, RIGHT)]
    return [wing for wing in wings if len(wing) >= count]


def are_connected(device: int, other: int) -> bool:
    return device // 4 == other // 4 or abs(device - other) == 4


@pytest.mark.parametrize(("count", "preferred"), [(1, [1, 3, 2, 4]), (2, [2, 3, 4]), (4, [4])])
def test_devices_come_from_the_wing_that_leaves_the_other_one_whole(count: int, preferred: list[int]) -> None:
    for free in SETS:
        if wings := list_wings(free, count):
            best = min(wings, key=lambda wing: preferred.index(len(wing)))
            assert choose(free, count) == best[:count], free


def test_two_devices_of_both_wings_are_connected() -> None:
    for free in SETS:
        if not list_wings(free, 2):
            pair = sorted(free)
            assert choose(free, 2) == (pair if len(pair) == 2 and are_connected(*pair) else []), free


def test_four_devices_of_both_wings_are_two_connected_pairs() -> None:
    for free in SETS:
        if list_wings(free, 4):
            continue
        possible = [four for four in FOURS if four <= free]
        # Without enough free devices for a choice the first will do; else two of the rest have to stay connected.
        good = [four for four in possible if len(free) < 6 or are_connected(*sorted(free - four))]
        expected = (good or possible[-1:] or [set()])[0]
        assert choose(free, 4) == sorted(expected), free


def test_eight_devices_are_all_of_them() -> None:
    assert {free for free in SETS if choose(free, 8)} == {frozenset(range(8))}
    assert choose(frozenset(range(8)), 8) == list(range(8))


@pytest.mark.parametrize("count", [0, 3, 5, 6, 7, 9])
def test_other_numbers_of_devices_are_not_given(count: int) -> None:
    assert not any(choose(free, count) for free in SETS)
