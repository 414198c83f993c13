"""Families whose days have little get an index for the whole of the next month."""

from datetime import UTC, datetime

import pytest

from pipeline.admin.months import NextMonth, choose_next_month
from schemas.indices import ATTEMPTS

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
"""Four and a half days before December."""
MIB = 1024**2


def choose(sizes: dict[str, int], now: datetime = NOW) -> NextMonth | None:
    return choose_next_month(ATTEMPTS, {f"schedulerlog-attempts-{day}": size for day, size in sizes.items()}, now)


def test_days_of_little_become_a_month() -> None:
    expected = NextMonth("schedulerlog-attempts-2026.12.00", 31 * 100 * MIB)
    assert choose({"2026.11.24": 30 * MIB, "2026.11.25": 100 * MIB}) == expected


@pytest.mark.parametrize(("mib", "is_month"), [(165, True), (166, False)])
def test_one_busy_day_keeps_an_index_a_day(mib: int, is_month: bool) -> None:
    # 5 GiB in 31 days are 165.2 MiB a day.
    assert (choose({"2026.11.24": mib * MIB, "2026.11.25": 1}) is not None) == is_month


@pytest.mark.parametrize(
    ("day", "hour", "is_made"), [(23, 23, False), (24, 1, True), (28, 23, True), (29, 0, False), (30, 12, False)]
)
def test_it_is_made_between_a_week_and_two_days_before_the_month(day: int, hour: int, is_made: bool) -> None:
    month = choose({"2026.11.20": MIB}, datetime(2026, 11, day, hour, tzinfo=UTC))
    assert (month is not None) == is_made


def test_after_december_comes_january() -> None:
    month = choose({"2026.12.20": MIB}, datetime(2026, 12, 28, tzinfo=UTC))
    assert month == NextMonth("schedulerlog-attempts-2027.01.00", 31 * MIB)


def test_without_a_day_that_has_ended_the_fleet_is_unknown() -> None:
    assert choose({}) is None
    assert choose({"2026.11.26": MIB}) is None
    assert choose({"copy": MIB}) is None


def test_of_a_month_that_runs_its_mean_day_counts() -> None:
    # 25.5 days until now.
    assert choose({"2026.11.00": 51 * MIB}) == NextMonth("schedulerlog-attempts-2026.12.00", 62 * MIB)


def test_what_is_there_is_not_made_again() -> None:
    assert choose({"2026.11.25": MIB, "2026.12.00": 0}) is None
