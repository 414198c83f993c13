"""Daily indices that have expired."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.admin.retention import Dropped, MadeMonth, list_expired, list_oldest, to_json_line
from schemas.indices import ATTEMPTS, POD_STATES, TRENDS

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def list_expired_names(*names: str, keep_days: int = 30) -> list[str]:
    """List the expired of indices that were made long ago."""
    made_at = dict.fromkeys(names, datetime(2020, 1, 1, tzinfo=UTC))
    return [index.name for index in list_expired(ATTEMPTS, made_at, timedelta(days=keep_days), NOW)]


def test_an_index_is_deleted_when_its_day_ended_longer_ago_than_it_is_kept() -> None:
    # The 21st of October ended 30 days and 12 hours ago, the 22nd 29 days and 12 hours.
    last, first = "schedulerlog-attempts-2026.10.21", "schedulerlog-attempts-2026.10.22"
    assert list_expired_names(first, last) == [last]


def test_the_oldest_is_deleted_first() -> None:
    old = [f"schedulerlog-attempts-2026.0{month}.01" for month in (3, 1, 2)]
    assert list_expired_names(*old) == sorted(old)


@pytest.mark.parametrize(
    "name",
    [
        "schedulerlog-attempts",
        "schedulerlog-attempts-2020",
        "schedulerlog-attempts-2020.01.01-reindexed",
        "schedulerlog-attempts-2020.13.45",
        "schedulerlog-devices-2020.01.01",
        "schedulerlog-attempts-٢٠٢٠.01.01",
        "my-schedulerlog-attempts-2020.01.01",
    ],
)
def test_an_index_with_another_name_is_left(name: str) -> None:
    assert list_expired_names(name) == []


def test_an_index_of_the_future_is_left() -> None:
    assert list_expired_names("schedulerlog-attempts-2031.01.01", keep_days=1) == []


def test_what_was_read_from_an_old_log_is_kept_as_long_after_that_day() -> None:
    name, read_at = "schedulerlog-attempts-2024.04.20", NOW - timedelta(days=10)
    for days, is_kept in ((9, False), (11, True)):
        names = [index.name for index in list_expired(ATTEMPTS, {name: read_at}, timedelta(days=days), NOW)]
        assert names == ([] if is_kept else [name])


def test_an_index_of_a_month_is_deleted_when_the_month_ended_longer_ago_than_it_is_kept() -> None:
    july, august = (TRENDS.name(datetime(2026, month, 22, 11, 59, tzinfo=UTC)) for month in (7, 8))
    assert (july, august) == ("schedulerlog-trends-2026.07.01", "schedulerlog-trends-2026.08.01")
    made_at = dict.fromkeys((august, july), datetime(2020, 1, 1, tzinfo=UTC))
    # July ended 112 days and 12 hours before the 21st of November, August 81 days and 12 hours.
    expired = list(list_expired(TRENDS, made_at, timedelta(days=90), NOW))
    assert [(index.name, index.since) for index in expired] == [(july, timedelta(days=22, hours=12))]


def test_a_whole_month_among_days_is_deleted_when_it_ended_longer_ago_than_it_is_kept() -> None:
    september, october = (f"schedulerlog-attempts-2026.{month}.00" for month in ("09", "10"))
    # September ended 51 days and 12 hours before the 21st of November, October 20 days and 12 hours.
    assert list_expired_names(september, october) == [september]
    assert list_expired_names(september, october, keep_days=20) == [september, october]
    assert list_expired_names("schedulerlog-trends-2026.09.00", "schedulerlog-attempts-2026.13.00") == []


def test_an_index_without_days_is_never_deleted_whole() -> None:
    made_at = {POD_STATES.name(NOW): datetime(2020, 1, 1, tzinfo=UTC)}
    assert list(list_expired(POD_STATES, made_at, timedelta(days=1), NOW)) == []


def test_what_was_deleted_is_a_line_for_people_and_for_programs() -> None:
    index = Dropped("schedulerlog-attempts-2026.10.21", 30, is_dry_run=True, days_past=2)
    assert str(index) == "index schedulerlog-attempts-2026.10.21: would be dropped, 2 days past the 30 that it is kept"
    assert json.loads(to_json_line(index)) == {
        "index": "schedulerlog-attempts-2026.10.21", "kept_days": 30, "is_dry_run": True, "days_past": 2,
        "documents": None, "bytes_over": None,
    }  # fmt: skip
    assert str(Dropped("a", 14, is_dry_run=False, documents=7)) == "index a: 7 documents dropped"
    assert to_json_line("no answer") == '{"error": "no answer"}'


def test_the_day_that_was_kept_longest_is_the_first_to_go_and_never_the_current_one() -> None:
    """A log of years ago that was read an hour ago is kept as long from then on as an index of today's attempts."""
    made_at = {
        "schedulerlog-attempts-2026.11.21": NOW - timedelta(hours=12),
        "schedulerlog-attempts-2026.11.20": NOW - timedelta(days=1),
        "schedulerlog-attempts-2026.11.18": NOW - timedelta(days=3),
        "schedulerlog-attempts-2024.04.20": NOW - timedelta(hours=1),
        "schedulerlog-attempts-2026.11.01-copy": NOW - timedelta(days=20),
    }
    assert list_oldest(ATTEMPTS, made_at, NOW) == [
        "schedulerlog-attempts-2026.11.18",
        "schedulerlog-attempts-2026.11.20",
        "schedulerlog-attempts-2024.04.20",
    ]


def test_an_index_that_was_deleted_for_its_size_says_so() -> None:
    index = Dropped("schedulerlog-devices-2026.11.18", 7, is_dry_run=False, bytes_over=1_500_000)
    assert str(index) == (
        "index schedulerlog-devices-2026.11.18: dropped, its family had 1,500,000 bytes above its limit"
    )


def test_an_index_made_for_a_month_says_so() -> None:
    index = MadeMonth("schedulerlog-devices-2026.12.00", 1_500_000, is_dry_run=True)
    assert str(index) == (
        "index schedulerlog-devices-2026.12.00: would be made for the whole month, with 1,500,000 bytes expected"
    )
    assert json.loads(to_json_line(index)) == {
        "index": "schedulerlog-devices-2026.12.00", "expected_bytes": 1_500_000, "is_dry_run": True,
    }  # fmt: skip
