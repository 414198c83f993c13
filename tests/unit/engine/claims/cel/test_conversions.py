"""Conversions of CEL at their bounds: durations and numbers as Go's ``time`` and ``strconv`` document them.

Amounts are worked out by hand; a duration has nanoseconds.
"""

import math

import pytest

from engine.claims.cel.conversions import parse_duration, parse_timestamp, print_double, to_string
from engine.claims.cel.values import Duration, EvaluationError, Timestamp, TypeValue, Uint, Value

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1ns", 1),
        ("1us", 1_000),
        ("1µs", 1_000),
        ("1μs", 1_000),
        ("1ms", 1_000_000),
        ("1s", SECOND),
        ("1m", 60 * SECOND),
        ("1h", 3_600 * SECOND),
        ("1h2m3s", 3_723 * SECOND),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("2.s", 2 * SECOND),
        ("0.25h", 900 * SECOND),
        ("1.000000001s", SECOND + 1),
        ("1.0000000019s", SECOND + 1),
        ("-1.5h", -5_400 * SECOND),
        ("+3s", 3 * SECOND),
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("10s10s", 20 * SECOND),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize("text", ["", "-", "+", "1", "s", ".s", "1d", "1 s", "1s ", "--1s", "1.2.3s", "00", "9999999h"])
def test_a_text_that_go_does_not_read_is_no_duration(text: str) -> None:
    with pytest.raises(EvaluationError, match=r"'string' to 'google\.protobuf\.Duration'|range"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01Z", SECOND),
        ("1969-12-31T23:59:59Z", -SECOND),
        ("1970-01-01T00:00:00.5Z", 500_000_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456_789),
        ("1970-01-01T00:00:00.1234567899Z", 123_456_789),
        ("1970-01-02T00:00:00Z", 86_400 * SECOND),
        # East of Greenwich it is later than in UTC.
        ("1970-01-01T01:30:00+01:30", 0),
        ("1969-12-31T22:30:00-01:30", 0),
        ("1970-01-01T00:00:00+00:01", -60 * SECOND),
    ],
)
def test_a_timestamp_counts_from_1970_in_utc(text: str, nanoseconds: int) -> None:
    assert parse_timestamp(text) == Timestamp(nanoseconds)


@pytest.mark.parametrize(
    "text",
    ["", "1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-02-30T00:00:00Z", "1970-01-01 00:00:00Z",
     "1970-01-01T24:00:00Z", "1970-01-01T00:00:00Zx", "70-01-01T00:00:00Z"],
)  # fmt: skip
def test_a_text_in_another_form_is_no_timestamp(text: str) -> None:
    with pytest.raises(EvaluationError, match=r"'string' to 'google\.protobuf\.Timestamp'"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "-0"), (1.0, "1"), (-1.5, "-1.5"), (0.1, "0.1"), (100.0, "100"),
        (99_999.5, "99999.5"), (100_000.0, "100000"), (999_999.0, "999999"), (1_000_000.0, "1e+06"),
        (1_234_567.0, "1.234567e+06"), (-2_500_000.0, "-2.5e+06"), (0.0001, "0.0001"), (0.00012, "0.00012"),
        (0.00001, "1e-05"), (0.000012, "1.2e-05"), (1e10, "1e+10"), (1e100, "1e+100"), (5e-324, "5e-324"),
        (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"),
    ],
)  # fmt: skip
def test_a_double_has_an_exponent_below_four_zeros_and_above_six_digits(value: float, text: str) -> None:
    assert print_double(value) == text
    assert to_string(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), ("x", "x"), (-7, "-7"), (Uint(7), "7"), (b"\xc3\xa4", "ä"),
        (Duration(0), "0s"), (Duration(SECOND), "1s"), (Duration(-SECOND), "-1s"), (Duration(1_500_000_000), "1.5s"),
        (Duration(1), "0.000000001s"), (Duration(-1), "-0.000000001s"), (Duration(3_600 * SECOND), "3600s"),
        (Timestamp(0), "1970-01-01T00:00:00Z"), (Timestamp(-1), "1969-12-31T23:59:59.999999999Z"),
        (Timestamp(1_500_000_000), "1970-01-01T00:00:01.5Z"), (TypeValue("int"), "int"),
    ],
)  # fmt: skip
def test_a_value_is_printed_as_cel_prints_it(value: Value, text: str) -> None:
    assert to_string(value) == text


def test_bytes_that_are_not_utf8_are_no_text() -> None:
    with pytest.raises(EvaluationError, match="invalid UTF-8"):
        to_string(b"\xff")
