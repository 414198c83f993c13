"""Durations in Go's form."""

from datetime import timedelta

import pytest

from runtime import durations


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(minutes=5), "5m0s"),
        (timedelta(seconds=28), "28s"),
        (timedelta(minutes=1, seconds=30), "1m30s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(hours=100, seconds=1.5), "100h0m1.5s"),
        (timedelta(milliseconds=1500), "1.5s"),
        (timedelta(milliseconds=100), "100ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(), "0s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(duration: timedelta, text: str) -> None:
    assert durations.format_go(duration) == text


@pytest.mark.parametrize("text", ["5m", "90s", "1h30m", "0s", "500ms", "1.5h"])
def test_a_duration_is_read_as_go_reads_it(text: str) -> None:
    assert durations.parse(durations.format_go(durations.parse(text))) == durations.parse(text)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "5minutes", "1e3s", "٥m"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write one such as 5m"):
        durations.parse(text)
