"""The interval of the first end, against quantiles of Python's statistics and against simulated histories."""

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.forecasts.first_end import MIN_HOLDS, find_first_end, list_remaining
from schemas.forecasts import ForecastRecord
from tests.support.stress import count_examples

DAY = 86_400.0
SECONDS = st.floats(60, 30 * DAY)


@given(lengths=st.lists(SECONDS, min_size=MIN_HOLDS, max_size=300), share=st.floats(0, 0.9))
@settings(max_examples=count_examples(100))
def test_of_one_pod_it_is_the_first_and_last_tenth_of_the_longer_holds(lengths: list[float], share: float) -> None:
    running_for = share * statistics.median(lengths)
    longer = [length for length in lengths if length >= running_for]
    if len(longer) < MIN_HOLDS:
        return
    tenths = statistics.quantiles((length - running_for for length in longer), n=10, method="exclusive")
    remaining = find_first_end([list_remaining(lengths, running_for)])
    # Equal lengths are a step, at which a quantile is the length.
    assert remaining.earliest == pytest.approx(max(tenths[0], 0), abs=1e-3)
    assert remaining.latest == pytest.approx(tenths[-1], abs=1e-3)


def test_holds_that_ended_before_count_for_nothing() -> None:
    assert list_remaining([5.0, 30.0, 20.0, 10.0], 10.0) == [0.0, 10.0, 20.0]


def draw_exponential(chance: random.Random) -> float:
    return chance.expovariate(1 / 7_200)


def draw_lognormal(chance: random.Random) -> float:
    return chance.lognormvariate(math.log(7_200), 1.0)


def draw_job_of_four_hours(chance: random.Random) -> float:
    """Draw a job of fixed length, with minutes for its start and end."""
    return 14_400 + chance.uniform(0, 600)


DRAWS: list[Callable[[random.Random], float]] = [draw_exponential, draw_lognormal, draw_job_of_four_hours]


def judge_forecast(
    chance: random.Random,
    draw_past: Callable[[random.Random], float],
    draw: Callable[[random.Random], float],
    pods: int,
) -> bool | None:
    """Simulate pods that run since different times, and tell whether the first end is within the interval.

    None where the history is too short.
    """
    samples, ends = [], []
    for _ in range(pods):
        history = [draw_past(chance) for _ in range(60)]
        running_for = chance.uniform(0, 5_400)
        # A pod that runs is one whose hold is longer, whatever its age is.
        length = next(length for length in iter(lambda: draw(chance), None) if length > running_for)
        sample = list_remaining(history, running_for)
        if len(sample) < MIN_HOLDS:
            return None
        samples.append(sample)
        ends.append(length - running_for)
    remaining = find_first_end(samples)
    return remaining.earliest <= min(ends) <= remaining.latest


def count_right(
    seed: int,
    draw_past: Callable[[random.Random], float],
    draw: Callable[[random.Random], float],
    pods: int,
    times: int,
) -> list[bool]:
    chance = random.Random(seed)
    verdicts = (judge_forecast(chance, draw_past, draw, pods) for _ in range(times))
    return [is_right for is_right in verdicts if is_right is not None]


@pytest.mark.parametrize("pods", [1, 2, 5])
@pytest.mark.parametrize("draw", DRAWS)
def test_the_interval_covers_four_of_five_first_ends(draw: Callable[[random.Random], float], pods: int) -> None:
    verdicts = count_right(seed=7, draw_past=draw, draw=draw, pods=pods, times=600)
    assert len(verdicts) > 540
    # Four standard deviations of a share of 0.8 among 600 are 0.065.
    assert abs(sum(verdicts) / len(verdicts) - 0.8) < 0.065


@given(seed=st.integers(0, 10_000))
@settings(max_examples=count_examples(30), deadline=None)
def test_where_jobs_become_four_times_as_long_the_record_is_not_proved(seed: int) -> None:
    def draw_longer(chance: random.Random) -> float:
        return 4 * draw_job_of_four_hours(chance)

    verdicts = count_right(seed, draw_job_of_four_hours, draw_longer, pods=1, times=20)
    assert len(verdicts) == 20
    assert not ForecastRecord(sum(verdicts), len(verdicts)).is_proved
