"""Ticks of an axis of time, worked out by hand."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from page.time_axis import MAX_STEPS, choose_step, draw_time_axis, list_ticks


def label_ticks(begin: str, end: str) -> list[tuple[float, str]]:
    """List the percent and the label of each tick of the drawing."""
    ticks = re.findall(r'<text x="([\d.]+)%"[^>]*>([^<]+)<title>', draw_time_axis(begin, end))
    return [(float(percent), label) for percent, label in ticks]


@pytest.mark.parametrize(
    ("begin", "end", "ticks"),
    [
        # Two minutes: every half minute.
        ("2026-11-27T23:33:45Z", "2026-11-27T23:35:45Z",
         [(12.5, "23:34:00"), (37.5, "23:34:30"), (62.5, "23:35:00"), (87.5, "23:35:30")]),
        # Two hours around midnight, which is a day.
        ("2026-11-27T23:00:00Z", "2026-11-28T01:00:00Z",
         [(0, "23:00"), (25, "23:30"), (50, "11-28"), (75, "00:30"), (100, "01:00")]),
        # A day: every six hours.
        ("2026-11-27T03:00:00Z", "2026-11-28T03:00:00Z",
         [(12.5, "06:00"), (37.5, "12:00"), (62.5, "18:00"), (87.5, "11-28")]),
        # A week: every second day, from the midnight before its begin.
        ("2026-11-20T12:00:00Z", "2026-11-27T12:00:00Z", [(21.43, "11-22"), (50, "11-24"), (78.57, "11-26")]),
    ],
)  # fmt: skip
def test_ticks_are_at_round_times(begin: str, end: str, ticks: list[tuple[float, str]]) -> None:
    assert label_ticks(begin, end) == ticks


def test_a_tick_names_its_time_in_utc_and_its_label_lies_within_the_width() -> None:
    axis = draw_time_axis("2026-11-27T23:00:00Z", "2026-11-28T01:00:00Z")
    assert "<title>2026-11-28 00:00:00 UTC</title>" in axis
    assert re.findall(r'text-anchor="(\w+)"', axis) == ["start", "middle", "middle", "middle", "end"]


def test_a_range_without_length_or_of_less_than_a_second_has_no_axis() -> None:
    assert draw_time_axis("2026-11-27T23:00:00Z", "2026-11-27T23:00:00Z") == ""
    assert draw_time_axis("2026-11-27T23:00:00.1Z", "2026-11-27T23:00:00.9Z") == ""


@given(st.integers(0, 10**9), st.integers(30, 10**8))
def test_every_range_has_ticks_that_fit_its_width(since: int, seconds: int) -> None:
    begin, end = (datetime.fromtimestamp(second, UTC) for second in (since, since + seconds))
    ticks = list(list_ticks(begin, end, choose_step(begin, end)))
    assert 1 <= len(ticks) <= MAX_STEPS + 1
    assert all(begin <= tick.moment <= end and 0 <= tick.percent <= 100 for tick in ticks)
