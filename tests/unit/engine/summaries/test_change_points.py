"""Changes of level are found where they are, and none in counts that only vary by chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.change_points import MIN_BUCKETS, ChangePoint, find_change_points


def test_a_step_is_marked_at_its_bucket_with_both_levels() -> None:
    assert find_change_points([5] * 12 + [20] * 12) == [ChangePoint(12, 5.0, 20.0)]


def test_a_rise_and_a_fall_are_two_changes() -> None:
    assert find_change_points([2] * 10 + [40] * 8 + [2] * 10) == [
        ChangePoint(10, 2.0, 40.0),
        ChangePoint(18, 40.0, 2.0),
    ]


def test_what_begins_and_what_ends_is_a_change() -> None:
    assert find_change_points([0] * 12 + [6] * 12) == [ChangePoint(12, 0.0, 6.0)]
    assert find_change_points([6] * 12 + [0] * 12) == [ChangePoint(12, 6.0, 0.0)]


@pytest.mark.parametrize("counts", [[], [5], [0] * 50, [7] * 50, [3] * (2 * MIN_BUCKETS - 1)])
def test_nothing_changes_where_nothing_does_or_too_little_is_known(counts: list[int]) -> None:
    assert find_change_points(counts) == []


def test_chance_alone_is_no_change() -> None:
    """2,000 series of Poisson counts, and 2,000 with three times as much variance, as retries in bursts have."""
    chance = np.random.default_rng(7)
    for rate in (0.2, 1, 5, 30, 400):
        for _ in range(400):
            assert find_change_points(chance.poisson(rate, 96).tolist()) == []
            assert find_change_points(chance.negative_binomial(rate / 2, 1 / 3, 96).tolist()) == []


def test_a_step_is_found_among_chance() -> None:
    chance = np.random.default_rng(11)
    for _ in range(200):
        series = np.concatenate([chance.poisson(5, 48), chance.poisson(20, 48)])
        (change,) = find_change_points(series.tolist())
        assert abs(change.bucket - 48) <= 2


@given(st.lists(st.integers(0, 10**6), max_size=120))
def test_any_series_has_an_answer(counts: list[int]) -> None:
    buckets = [change.bucket for change in find_change_points(counts)]
    assert buckets == sorted(set(buckets))
    assert all(MIN_BUCKETS <= bucket <= len(counts) - MIN_BUCKETS for bucket in buckets)


@given(st.integers(2, 50), st.integers(8, 40))
def test_a_series_has_the_changes_of_the_reversed_one(level: int, size: int) -> None:
    counts = [level] * size + [level * 10] * (size + 3)
    mirrored = [len(counts) - change.bucket for change in find_change_points(counts[::-1])]
    assert [change.bucket for change in find_change_points(counts)] == mirrored[::-1]
