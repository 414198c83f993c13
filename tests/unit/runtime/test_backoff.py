"""Pauses grow up to the longest; a store that is away is one line in the log, and one when it is back."""

import logging
from itertools import islice
from random import Random
from types import SimpleNamespace

import pytest

from runtime import backoff as backoff_module
from runtime.backoff import Backoff, draw_backoff_seconds


def test_each_pause_is_drawn_from_the_upper_half_of_a_step_that_doubles() -> None:
    drawn = list(islice(draw_backoff_seconds(Random(1), 1.0, 8.0), 100))
    steps = [1.0, 2.0, 4.0] + [8.0] * 97
    assert all(step / 2 <= pause <= step for pause, step in zip(drawn, steps, strict=True))
    assert len(set(drawn)) == 100


def test_the_first_pause_is_not_longer_than_the_longest() -> None:
    assert next(draw_backoff_seconds(Random(1), 5.0, 0.1)) <= 0.1


async def test_a_store_that_is_away_is_logged_once_and_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff("Kafka", longest_seconds=0.001)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await backoff.wait_after_failure("no answer")
        assert backoff.is_waiting
        backoff.note_success()
        backoff.note_success()
    assert not backoff.is_waiting
    first, last = (record.getMessage() for record in caplog.records)
    assert first == "Kafka: no answer. Nothing is lost: trying again until it works."
    assert last.startswith("Kafka works again after ")
    assert last.endswith(" and 3 failed tries")


async def test_who_waits_says_for_what_why_and_how_long_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    # Of this module alone: the event loop has the same clock.
    monkeypatch.setattr(backoff_module, "time", SimpleNamespace(monotonic=lambda: seconds))
    backoff = Backoff("OpenSearch", longest_seconds=0.001)
    assert (backoff.describe_wait(), backoff.waiting_seconds) == ("", 0.0)
    for seconds in (10.0, 11.0, 69.0, 75.0, 76.0, 136.0):
        await backoff.wait_after_failure(f"cause at {seconds:.0f}")
    assert backoff.describe_wait() == "waiting for OpenSearch for 126 s: cause at 136"
    assert [record.getMessage() for record in caplog.records] == [
        "OpenSearch: cause at 10. Nothing is lost: trying again until it works.",
        "still waiting for OpenSearch for 65 s: cause at 75. Trying again.",
        "still waiting for OpenSearch for 126 s: cause at 136. Trying again.",
    ]
    backoff.note_success()
    assert backoff.describe_wait() == ""


@pytest.mark.parametrize("cause", ["TimeoutError: ", "TimeoutError", ": ", "TimeoutError: ."])
def test_n14_an_error_without_words_has_a_cause(cause: str, caplog: pytest.LogCaptureFixture) -> None:
    backoff = Backoff("Kafka", 1.0)
    backoff.note(cause)
    assert "no answer" in backoff.describe_wait()
    assert ": ." not in caplog.text
