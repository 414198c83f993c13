"""Ids are derived: equal for the same fact, different for two facts, and the same in every language."""

import subprocess
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import count_microseconds, derive_attempt_id

MOMENT = datetime(2026, 4, 22, 2, 15, 42, 349712, tzinfo=UTC)

moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone


def test_an_attempt_id_is_the_one_that_b2sum_computes() -> None:
    values = b"default\x1fhami-scheduler\x1f7b6f3c0e\x1f1776824142349712"
    by_hand = subprocess.run(["b2sum", "-l", "128"], input=values, capture_output=True, check=True).stdout.split()[0]
    assert derive_attempt_id("default", "hami-scheduler", "7b6f3c0e", MOMENT) == by_hand.decode()


def test_the_zone_of_the_start_does_not_matter() -> None:
    assert derive_attempt_id("default", "s", "u", MOMENT) == derive_attempt_id(
        "default", "s", "u", MOMENT.astimezone(timezone(timedelta(hours=8)))
    )


def test_cluster_scheduler_pod_and_start_each_separate_attempts() -> None:
    ids = {
        derive_attempt_id(*values)
        for values in [
            ("east", "s", "u", MOMENT),
            ("west", "s", "u", MOMENT),
            ("east", "t", "u", MOMENT),
            ("east", "s", "v", MOMENT),
            ("east", "s", "u", MOMENT + timedelta(microseconds=1)),
            ("east", "su", "", MOMENT),
            ("east", "", "su", MOMENT),
            ("easts", "", "u", MOMENT),
        ]
    }
    assert len(ids) == 8


def test_a_name_that_is_no_utf_8_has_an_id_too() -> None:
    assert len(derive_attempt_id("default", "s", "\ud800", MOMENT)) == 32


@given(moments)
def test_microseconds_are_exact_in_every_year(moment: datetime) -> None:
    back = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=count_microseconds(moment))
    assert back == moment
