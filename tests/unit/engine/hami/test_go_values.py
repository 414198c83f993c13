"""Values as Go reads them.

The outcomes are those of Go's documentation: ``strconv.ParseInt`` accepts a sign and decimal digits, ``ParseBool`` the
words 1, t, T, TRUE, true, True, 0, f, F, FALSE, false, False; ``encoding/json`` "preferentially uses an exact match
but also accepts a case-insensitive one", ignores unknown keys, and leaves a field alone for null.
"""

from typing import Any

import pytest

from engine.hami.go_values import (
    INT32,
    INT64,
    UINT32,
    UINT64,
    Fields,
    InvalidValueError,
    ReadValue,
    describe_kind,
    make_integer_reader,
    parse_boolean,
    parse_integer,
    parse_json,
    read_array,
    read_boolean,
    read_fields,
    read_string,
    to_mapping,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("0" * 63 + "5", 5),
        ("", None),
        ("+", None),
        ("-", None),
        ("--7", None),
        (" 7", None),
        ("7 ", None),
        ("1_000", None),
        ("1.0", None),
        ("0x10", None),
        ("٧", None),
        ("²", None),
    ],
)
def test_an_integer_is_a_sign_and_decimal_digits(text: str, value: int | None) -> None:
    assert parse_integer(text, *INT64) == value


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        (INT32, -2_147_483_648, 2_147_483_647),
        (INT64, -9_223_372_036_854_775_808, 9_223_372_036_854_775_807),
        (UINT32, 0, 4_294_967_295),
        (UINT64, 0, 18_446_744_073_709_551_615),
    ],
)
def test_an_integer_fits_its_width(bounds: tuple[int, int], low: int, high: int) -> None:
    assert [parse_integer(str(value), *bounds) for value in (low - 1, low, high, high + 1)] == [None, low, high, None]
    read = make_integer_reader(*bounds)
    assert [read(low, "here"), read(high, "here")] == [low, high]
    for value in (low - 1, high + 1):
        with pytest.raises(InvalidValueError) as refusal:
            read(value, "here")
        assert (refusal.value.location, refusal.value.problem) == (
            "here", f"is {value}, write a number from {low} to {high}",
        )  # fmt: skip


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"])
def test_a_boolean_is_one_of_twelve_words(text: str) -> None:
    assert parse_boolean(text) is (text in ("1", "t", "T", "TRUE", "true", "True"))
    assert parse_boolean(f"{text} ") is None


@pytest.mark.parametrize("text", ["", "yes", "tRUE", "2", "on"])
def test_other_words_are_no_boolean(text: str) -> None:
    assert parse_boolean(text) is None


def test_a_text_that_cannot_be_parsed_is_refused_with_its_place() -> None:
    assert parse_json('{"a": [1]}') == {"a": [1]}
    with pytest.raises(InvalidValueError) as refusal:
        parse_json('{"a": x}')
    assert refusal.value.location == "character 6"
    assert refusal.value.problem.startswith("is not JSON (")


FIELDS: Fields = {"count": ("slots", make_integer_reader(*INT32)), "mode": ("mode", read_string)}


@pytest.mark.parametrize(
    ("item", "fields"),
    [
        (None, {}),
        ({}, {}),
        ({"count": 3, "mode": "mig"}, {"slots": 3, "mode": "mig"}),
        ({"COUNT": 3, "Mode": "mig"}, {"slots": 3, "mode": "mig"}),
        ({"count": 0, "mode": ""}, {"slots": 0, "mode": ""}),
        ({"count": None, "of a newer release": [1]}, {}),
    ],
)
def test_keys_of_an_object_are_read_without_regard_to_case(item: Any, fields: dict[str, Any]) -> None:
    assert read_fields(item, FIELDS, "device 3") == fields


@pytest.mark.parametrize(
    ("item", "location", "problem"),
    [
        ([], "device 3", "is an array, write a JSON object"),
        ("x", "device 3", "is a string, write a JSON object"),
        ({"count": "3"}, "device 3, field count", "is a string, write a whole number"),
        ({"Count": 1.5}, "device 3, field Count", "is the number 1.5, write a whole number"),
        ({"count": True}, "device 3, field count", "is a boolean, write a whole number"),
        ({"mode": 1}, "device 3, field mode", "is the number 1, write a string"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_its_place(item: Any, location: str, problem: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        read_fields(item, FIELDS, "device 3")
    assert (refusal.value.location, refusal.value.problem) == (location, problem)


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (read_array, {}, "is an object, write a JSON array"),
        (read_boolean, 1, "is the number 1, write true or false"),
        (read_boolean, None, "is null, write true or false"),
        (read_string, None, "is null, write a string"),
    ],
)
def test_readers_refuse_other_kinds(read: ReadValue, value: Any, problem: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        read(value, "here")
    assert (refusal.value.location, refusal.value.problem) == ("here", problem)


def test_readers_return_values_of_their_kind() -> None:
    assert (read_array(None, ""), read_array([1, 2], "")) == ([], [1, 2])
    assert (read_boolean(value=True, location=""), read_boolean(value=False, location="")) == (True, False)
    assert (to_mapping({"a": 1}), to_mapping([1]), to_mapping(None)) == ({"a": 1}, {}, {})
    assert describe_kind(10**50) == f"the number 1{'0' * 39}"
