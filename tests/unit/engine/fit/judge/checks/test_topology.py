import itertools
import random

import pytest

from engine.fit.judge.checks.topology import MAX_COMBINATIONS, choose_devices


def draw_scores(uuids: list[str], seed: int) -> dict[str, dict[str, int]]:
    rnd = random.Random(seed)
    return {uuid: {other: rnd.randrange(100) for other in uuids if other != uuid} for uuid in uuids}


def sum_scores(chosen: tuple[int, ...], uuids: list[str], scores: dict[str, dict[str, int]]) -> int:
    return sum(scores[uuids[i]][uuids[j]] for i, j in itertools.combinations(chosen, 2))


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_of_several_the_best_bond_wins(count: int, seed: int) -> None:
    uuids = [f"GPU-{i}" for i in range(7)]
    scores = draw_scores(uuids, seed)
    best = max(itertools.combinations(range(7), count), key=lambda chosen: sum_scores(chosen, uuids, scores))
    assert choose_devices(uuids, count, scores) == list(best)


def test_of_one_the_worst_connected_device_is_taken() -> None:
    scores = {"a": {"b": 9, "c": 9}, "b": {"a": 9, "c": 1}, "c": {"a": 9, "b": 1}}
    assert choose_devices(["a", "b", "c"], 1, scores) == [1]


def test_without_scores_the_first_devices_are_taken() -> None:
    assert choose_devices(["a", "b", "c"], 2, {}) == [0, 1]


def test_more_combinations_than_can_be_compared_still_end_in_a_choice() -> None:
    uuids = [f"GPU-{i}" for i in range(128)]
    chosen = choose_devices(uuids, 64, draw_scores(uuids, 1))
    assert len(set(chosen)) == 64
    assert MAX_COMBINATIONS < 10**6


def test_scores_beyond_64_bits_do_not_wrap() -> None:
    huge = 2**63 - 1
    assert choose_devices(["a", "b", "c"], 2, {"a": {"b": -huge, "c": huge}, "b": {"c": 5}}) == [0, 2]


def test_two_instances_of_one_device_have_the_bond_that_it_has_with_itself() -> None:
    # HAMi's computeBestCombination reads it like any other; its device plugin writes none.
    tried = ["a", "b", "b", "c"]
    assert choose_devices(tried, 2, {"a": {"c": 5}, "b": {"b": 10}}) == [1, 2]
    assert choose_devices(tried, 2, {"a": {"c": 5}, "b": {"b": 4}}) == [0, 3]


def test_the_bond_of_a_device_with_itself_does_not_keep_it_from_being_taken_alone() -> None:
    # HAMi's computeWorstSingleCard leaves it out.
    assert choose_devices(["a", "a", "b"], 1, {"a": {"a": 50, "b": 1}, "b": {"a": 9}}) == [0]
