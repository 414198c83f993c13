from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.lines import klog

LINE = b'I1121 03:06:23.217054   32118 a.go:1068] "Found it" pod="ml/a" device index=3 score=7.5 err="say \\"hi\\""'
REFERENCE = datetime(2026, 12, 31, tzinfo=UTC)


def test_a_time_is_of_the_latest_year_that_is_not_in_the_future() -> None:
    assert klog.parse_time(LINE, REFERENCE) == datetime(2026, 11, 21, 3, 6, 23, 217054, UTC)
    assert klog.parse_time(LINE, datetime(2026, 11, 20, tzinfo=UTC)) == datetime(2025, 11, 21, 3, 6, 23, 217054, UTC)


def test_a_clock_that_is_a_little_ahead_is_of_the_same_year() -> None:
    time = klog.parse_time(LINE, datetime(2026, 11, 21, tzinfo=UTC))
    assert time is not None
    assert time.year == 2026


def test_a_line_of_new_years_eve_read_in_january_is_of_the_year_before() -> None:
    line = LINE.replace(b"1121 03", b"1231 23")
    assert klog.parse_time(line, datetime(2027, 1, 1, tzinfo=UTC)) == datetime(2026, 12, 31, 23, 6, 23, 217054, UTC)


def test_a_leap_day_is_of_a_leap_year() -> None:
    time = klog.parse_time(LINE.replace(b"1121", b"0229"), REFERENCE)
    assert time is not None
    assert time.year == 2024


def test_a_time_is_converted_to_utc() -> None:
    time = klog.parse_time(LINE, REFERENCE, ZoneInfo("Asia/Shanghai"))
    assert time == datetime(2026, 11, 20, 19, 6, 23, 217054, UTC)


@pytest.mark.parametrize("wrong", [b"1321", b"1132", b"0230", b"112", b"xxxx"])
def test_a_line_without_a_valid_time_has_none(wrong: bytes) -> None:
    assert klog.parse_time(LINE.replace(b"1121", wrong), REFERENCE) is None


def test_values_are_found_by_their_keys_also_where_keys_hold_spaces() -> None:
    assert klog.read_quoted(LINE, b"pod") == "ml/a"
    assert klog.read_integer(LINE, b"device index") == 3
    assert klog.read_decimal(LINE, b"score") == 7.5
    assert klog.read_quoted(LINE, b"err") == 'say "hi"'
    assert klog.read_quoted(LINE, b"nothing") is None


def test_a_key_inside_a_value_is_not_a_key() -> None:
    assert klog.read_quoted(rb'I] "x" message="a pod=\"b\" c" pod="d"', b"pod") == "d"


def test_a_value_that_does_not_end_is_none() -> None:
    assert klog.read_quoted(b'] x pod="ml/a', b"pod") is None
    assert klog.read_quoted(b'] x pod="ml/a\\"', b"pod") is None


def go_quoted(text: str) -> bytes:
    """Quote printable text, line ends and tabs as strconv.Quote does."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'] "m" key="{escaped}" after="x"'.encode()


@given(st.text(st.characters(min_codepoint=32, blacklist_categories=["Cs"]) | st.sampled_from('\n\t\\"')))
def test_a_quoted_text_comes_back(text: str) -> None:
    assert klog.read_quoted(go_quoted(text), b"key") == text


@given(st.binary())
def test_any_bytes_give_a_value_or_none(line: bytes) -> None:
    klog.read_quoted(b' key="' + line, b"key")
    klog.read_decimal(b" key=" + line, b"key")
    klog.parse_time(line, REFERENCE)
