"""The slope of a soak: its result for memory whose growth is known."""

import random
import subprocess
import sys
from statistics import stdev

import pytest

from dev.bench.soak import fit_slope

SECONDS = [2.0 * number for number in range(600)]


def test_a_steady_rise_is_reported_in_percent_of_the_mean_per_hour() -> None:
    trend = fit_slope(SECONDS, [100 + second / 3600 * 6 for second in SECONDS])
    assert trend.mean == pytest.approx(101, abs=0.01)
    assert trend.percent_an_hour == pytest.approx(6 / 101 * 100, rel=0.01)
    assert not trend.may_be_flat
    assert not trend.is_certainly_flat


def test_the_error_is_that_of_a_slope_which_is_only_noise() -> None:
    chance = random.Random(1)
    slopes = [fit_slope(SECONDS, [150 + chance.gauss(0, 0.5) for _ in SECONDS]) for _ in range(100)]
    assert stdev(trend.percent_an_hour / trend.error for trend in slopes) == pytest.approx(1, abs=0.3)


def test_the_error_of_readings_that_wander_is_larger_than_that_of_noise() -> None:
    chance = random.Random(1)
    wandering, level = [], 150.0
    for _ in SECONDS:
        level += chance.gauss(0, 0.1)
        wandering.append(level)
    noisy = [150 + chance.gauss(0, 0.5) for _ in SECONDS]
    assert fit_slope(SECONDS, wandering).error > fit_slope(SECONDS, noisy).error


READING = """
import os, sys
from dev.bench.cpu import read_resident_mib
from dev.bench.watched_worker import read_in_use_mib
for _ in range(20):
    read_in_use_mib(), read_resident_mib(os.getpid())
blocks, mib = sys.getallocatedblocks(), read_in_use_mib()
for _ in range(2_000):
    read_in_use_mib(), read_resident_mib(os.getpid())
print(sys.getallocatedblocks() - blocks, read_in_use_mib() - mib)
"""


def test_reading_memory_takes_none() -> None:
    # In a process of its own: other threads of this one take memory whenever they like.
    output = subprocess.run([sys.executable, "-c", READING], capture_output=True, text=True, check=True).stdout
    blocks, mib = output.split()
    assert int(blocks) < 500
    assert float(mib) < 0.5  # a quarter of a kilobyte each
