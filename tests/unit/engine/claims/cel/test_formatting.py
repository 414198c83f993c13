"""The method ``format`` of CEL's extension of strings, by the clauses that its document describes."""

import math

import pytest

from engine.claims.cel.formatting import FormattingError, format_values, split_format
from engine.claims.cel.values import Uint, Value


@pytest.mark.parametrize(
    ("form", "values", "text"),
    [
        ("", (), ""),
        ("no clause", (), "no clause"),
        ("100%%", (), "100%"),
        ("%%%d%%", (7,), "%7%"),
        ("%s and %s", ("a", 2), "a and 2"),
        ("%s", (True,), "true"),
        ("%s", (None,), "null"),
        ("%s", (("a", 1, 1.5, b"x", None, True),), '["a", 1, 1.500000, b"x", null, true]'),
        ("%s", ((math.nan, math.inf),), '["NaN", "+Inf"]'),
        ("%s", (('a"b\\c\n\t',),), r'["a\"b\\c\n\t"]'),
        ("%d", (-12,), "-12"),
        ("%d", (Uint(12),), "12"),
        ("%f", (1.5,), "1.500000"),
        ("%.0f", (2.0,), "2"),
        ("%.3f", (math.pi,), "3.142"),
        ("%.10f", (0.5,), "0.5000000000"),
        ("%e", (1052.032911275,), "1.052033e+03"),
        ("%.3e", (1052.032911275,), "1.052e+03"),
        ("%b", (5,), "101"),
        ("%b", (-5,), "-101"),
        ("%b", (True,), "1"),
        ("%b", (False,), "0"),
        ("%o", (11,), "13"),
        ("%x", (30,), "1e"),
        ("%X", (30,), "1E"),
        ("%x", (-30,), "-1e"),
        ("%x", ("Hello world!",), "48656c6c6f20776f726c6421"),
        ("%X", (b"\x1e\xff",), "1EFF"),
        ("%d %d %d", (1, 2, 3), "1 2 3"),
    ],
)
def test_values_are_written_as_their_clauses_say(form: str, values: tuple[Value, ...], text: str) -> None:
    assert format_values(form, values) == text


@pytest.mark.parametrize(
    ("form", "values", "error", "position"),
    [
        ("%d", (1.5,), "decimal clause can only be used on integers, was given double", 0),
        ("%d %d", (1, "a"), "decimal clause can only be used on integers, was given string", 1),
        ("%d", (True,), "decimal clause can only be used on integers, was given bool", 0),
        ("%f", (1,), "fixed-point clause can only be used on doubles, was given int", 0),
        ("%e", (1,), "scientific clause can only be used on doubles, was given int", 0),
        ("%b", (1.5,), "only integers and bools can be formatted as binary, was given double", 0),
        ("%o", (True,), "octal clause can only be used on integers, was given bool", 0),
        ("%x", (1.5,), "only integers, byte buffers, and strings can be formatted as hex, was given double", 0),
        ("%X", (True,), "only integers, byte buffers, and strings can be formatted as hex, was given bool", 0),
        ("%s %s", ("a",), "index 1 out of range", -1),
        ("%", (), "unexpected end of string", -1),
        ("a%", (), "unexpected end of string", -1),
        ("%q", (1,), 'unrecognized formatting clause "q"', -1),
        ("%.f", (1.5,), "error while converting precision to integer", -1),
        ("%.12", (1.5,), "could not find end of precision specifier", -1),
    ],
)
def test_other_formats_and_values_are_errors(form: str, values: tuple[Value, ...], error: str, position: int) -> None:
    with pytest.raises(FormattingError) as raised:
        format_values(form, values)
    assert error in str(raised.value)
    assert raised.value.position == position


def test_a_format_is_split_into_texts_and_clauses() -> None:
    assert list(split_format("a%.2fb%%c%sd")) == [("a", "f", 2), ("b%c", "s", None), ("d", "", None)]
    assert list(split_format("%.1000f")) == [("", "f", 1000), ("", "", None)]
