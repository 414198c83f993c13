"""Ranges of counts over time, and the buckets that they are divided into."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.http.trends_query import TrendsQuery

NOW = datetime(2026, 11, 28, 14, 45, tzinfo=UTC)


def derive_interval(**parameters: Any) -> timedelta:
    # `model_construct` leaves out the check of the range against the clock of this machine.
    return TrendsQuery.model_construct(**parameters).derive_range(NOW).interval


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        # Two hours are 24 buckets of five minutes, and two of an hour eight days ago.
        ("2026-11-28T10:00:00Z", "2026-11-28T12:00:00Z", 5 / 60),
        ("2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z", 1),
        ("2026-11-21T14:44:00Z", "2026-11-21T15:44:00Z", 1),
        ("2026-11-21T14:46:00Z", "2026-11-21T15:46:00Z", 1 / 60),
        ("2026-08-28T00:00:00Z", "2026-11-28T00:00:00Z", 24),
    ],
)
def test_a_bucket_of_more_than_a_week_ago_is_an_hour_at_least(since: str, until: str, hours: float) -> None:
    assert derive_interval(since=since, until=until) == timedelta(hours=hours)


def test_shorter_ones_are_refused_with_the_next_step() -> None:
    with pytest.raises(ValueError, match="interval=15m: counts of more than 7 days ago are of hours: take interval=1h"):
        derive_interval(since="8d", until="7d", interval="15m")
    assert derive_interval(since="8d", until="7d", interval="1h") == timedelta(hours=1)
    assert derive_interval(since="6d", until="5d", interval="15m") == timedelta(minutes=15)


@pytest.mark.parametrize(
    "parameters", [{"by": "layer", "count": "waited_seconds"}, {"by": "namespace", "count": "held_seconds"}]
)
def test_waits_and_held_devices_of_long_ago_are_exact(parameters: dict[str, str]) -> None:
    assert derive_interval(since="30d", until="29d", interval="15m", **parameters) == timedelta(minutes=15)
