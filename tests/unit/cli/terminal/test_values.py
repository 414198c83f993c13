from datetime import UTC, datetime

import pytest

from cli.terminal.values import format_age, format_duration, format_time, to_status, to_status_word
from page.texts import get_text
from page.views.translations import STATUS_WORDS

# As kubectl's HumanDuration writes them, shortened to two units.
DURATIONS = {
    0: "0s",
    45: "45s",
    60: "1m",
    90: "1m30s",
    700: "11m",
    3600: "1h",
    11_100: "3h5m",
    36_000: "10h",
    187_200: "2d4h",
}


@pytest.mark.parametrize(("seconds", "text"), DURATIONS.items())
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


def test_an_age_counts_from_a_time_of_the_api() -> None:
    now = datetime(2026, 4, 22, 14, 0, tzinfo=UTC)
    assert format_age("2026-04-22T13:40:00.000000Z", now) == "20m"
    assert format_age("2026-04-22T15:40:00+02:00", now) == "20m"
    assert format_age(None, now) == ""
    # Clocks differ.
    assert format_age("2026-04-22T14:00:02Z", now) == "0s"


def test_a_time_is_shown_to_the_second() -> None:
    assert format_time("2026-04-22T02:15:42.349712Z") == "2026-04-22 02:15:42"


def test_an_attempt_ends_in_the_words_of_the_page() -> None:
    assert {status: get_text("en", f"status.{status}") for status in STATUS_WORDS} == STATUS_WORDS


def test_a_status_is_asked_for_in_both_words() -> None:
    assert [to_status(word) for word in ("placed", "succeeded", "failed", "refused", "odd")] == [
        "succeeded", "succeeded", "failed", "failed", "odd",
    ]  # fmt: skip
    assert to_status_word("of a newer API") == "of a newer API"
