"""Pauses grow up to the longest; a store that is away is one line in the log, and one when it is back."""

import logging
from itertools import islice
from random import Random

import pytest

from process.backoff import Backoff, backoff_seconds


def test_each_pause_is_drawn_from_the_upper_half_of_a_step_that_doubles() -> None:
    drawn = list(islice(backoff_seconds(Random(1), 1.0, 8.0), 100))
    steps = [1.0, 2.0, 4.0] + [8.0] * 97
    assert all(step / 2 <= pause <= step for pause, step in zip(drawn, steps, strict=True))
    assert len(set(drawn)) == 100


def test_the_first_pause_is_not_longer_than_the_longest() -> None:
    assert next(backoff_seconds(Random(1), 5.0, 0.1)) <= 0.1


async def test_a_store_that_is_away_is_logged_once_and_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff("Kafka", longest_seconds=0.001)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await backoff.failed("no answer")
        assert backoff.is_waiting
        backoff.worked()
        backoff.worked()
    assert not backoff.is_waiting
    first, last = (record.getMessage() for record in caplog.records)
    assert first == "Kafka: no answer. Nothing is lost: trying again until it works."
    assert last.startswith("Kafka works again after ")
    assert last.endswith(" and 3 failed tries")
