"""Range of the trends that the page chooses where nobody chose one, worked out by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.ui.report_pages import find_shorter_range

BEGIN = datetime(2026, 11, 27, tzinfo=UTC)


def count_quarters(*counts: int, other: Sequence[int] = ()) -> dict[str, Any]:
    """Build the answer for a range in quarters of an hour."""
    times = [f"{BEGIN + number * timedelta(minutes=15):%Y-%m-%dT%H:%M:%SZ}" for number in range(len(counts))]
    until = f"{BEGIN + len(counts) * timedelta(minutes=15):%Y-%m-%dT%H:%M:%SZ}"
    ends = {"other": {"values": list(other)} if other else None, "unknown": None}
    return {"times": times, "until": until, "interval_seconds": 900, "items": [{"values": list(counts)}], **ends}


@pytest.mark.parametrize("has_interval", [False, True])
def test_counts_of_the_last_part_have_a_range_that_begins_with_them(has_interval: bool) -> None:
    trends = count_quarters(*[0] * 35, *[4] * 15)
    assert find_shorter_range(trends, has_interval=has_interval) == "2026-11-27T08:45:00.000000Z"


def test_counts_of_a_moment_have_a_range_of_twelve_bars() -> None:
    # The last of 50 quarters ends at 12:30.
    trends = count_quarters(*[0] * 49, 3)
    assert find_shorter_range(trends, has_interval=False) == "2026-11-27T12:15:00.000000Z"
    assert find_shorter_range(trends, has_interval=True) == "2026-11-27T09:30:00.000000Z"


def test_counts_that_fill_half_of_a_range_leave_it_as_it_is() -> None:
    assert find_shorter_range(count_quarters(0, 0, 1, 2), has_interval=False) == ""
    assert find_shorter_range(count_quarters(0, 0, 0, 2, other=[1, 0, 0, 0]), has_interval=False) == ""
    assert find_shorter_range(count_quarters(0, 0, 0), has_interval=False) == ""
