"""Columns take what JSON and producers give, and refuse everything that is not a row of numbers."""

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter, ValidationError

from schemas.events.columns import Codes, CodeText, Floats, Integers, measure_widest_character, write_code_text

ARRAYS = ConfigDict(arbitrary_types_allowed=True)
INTEGERS: TypeAdapter[Integers] = TypeAdapter(Integers, config=ARRAYS)
CODES: TypeAdapter[Codes] = TypeAdapter(Codes, config=ARRAYS)
CODE_TEXTS: TypeAdapter[CodeText] = TypeAdapter(CodeText, config=ARRAYS)
FLOATS: TypeAdapter[Floats] = TypeAdapter(Floats, config=ARRAYS)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_of_64_bits_come_back_as_they_were(values: list[int]) -> None:
    column = INTEGERS.validate_python(values)
    assert column.dtype == np.int64
    assert column.tolist() == values


@pytest.mark.parametrize(
    "wrong",
    [None, 7, "12", {"0": 1}, [1.0], [1.5], ["1"], [None], [[1]], [2**63], [-(2**63) - 1], [math.nan], (1, 2)],
    ids=repr,
)
def test_a_column_of_integers_refuses_everything_else(wrong: object) -> None:
    with pytest.raises(ValidationError, match="column"):
        INTEGERS.validate_python(wrong)


@pytest.mark.parametrize(
    "wrong",
    [np.array([1.5]), np.array([[1, 2]]), np.array([2**64 - 1], dtype=np.uint64), np.array(["1"]), np.array(1)],
    ids=repr,
)
def test_arrays_of_a_producer_are_not_cut_to_integers(wrong: object) -> None:
    with pytest.raises(ValidationError, match="column of integers"):
        INTEGERS.validate_python(wrong)


def test_small_integers_of_a_producer_are_widened() -> None:
    assert INTEGERS.validate_python(np.array([0, 255], dtype=np.uint8)).tolist() == [0, 255]


def test_codes_are_indices_or_minus_one() -> None:
    assert CODES.validate_python([-1, 0, 5]).tolist() == [-1, 0, 5]
    with pytest.raises(ValidationError, match="-1 for none"):
        CODES.validate_python([0, -2])


def test_a_text_of_codes_has_a_character_for_each_row() -> None:
    # Written out by hand: digits, what follows them in ASCII, and the character before 0 for none.
    assert write_code_text([0, 1, 9, 10, 17, 49, -1]) == "019:Aa/"
    assert CODE_TEXTS.validate_python("019:Aa/").tolist() == [0, 1, 9, 10, 17, 49, -1]
    # A producer's own codes.
    assert CODE_TEXTS.validate_python([0, -1]).tolist() == [0, -1]


@given(st.lists(st.integers(-1, 50_000)))
def test_a_text_of_codes_comes_back_and_takes_no_more_bytes_than_its_widest_character(codes: list[int]) -> None:
    text = write_code_text(codes)
    assert CODE_TEXTS.validate_python(text).tolist() == codes
    json = orjson.dumps(text)
    assert len(json) - 2 <= len(codes) * measure_widest_character(np.array(codes, dtype=np.int64))


@given(st.text() | st.text(st.characters(min_codepoint=40, max_codepoint=130)))
def test_a_text_is_read_as_codes_character_by_character(text: str) -> None:
    codes = [ord(character) - ord("0") for character in text]
    if min(codes, default=0) < -1:
        with pytest.raises(ValidationError, match="-1 for none"):
            CODE_TEXTS.validate_python(text)
    else:
        column = CODE_TEXTS.validate_python(text)
        assert column.dtype == np.int64
        assert column.tolist() == codes


@pytest.mark.parametrize("wrong", ["0.", "- ", "\ud800", None, 7, {"0": 1}, ["0"], [[1]]], ids=repr)
def test_a_text_of_codes_refuses_everything_else(wrong: object) -> None:
    with pytest.raises(ValidationError):
        CODE_TEXTS.validate_python(wrong)


def test_an_empty_column_is_a_column() -> None:
    assert (
        INTEGERS.validate_python([]).shape
        == CODES.validate_python([]).shape
        == FLOATS.validate_python([]).shape
        == (0,)
    )


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_floats_of_32_bits_come_back_as_they_were(values: list[float]) -> None:
    column = FLOATS.validate_python(values)
    assert column.dtype == np.float32
    assert column.tolist() == values


@pytest.mark.parametrize(
    "wrong",
    [None, 1.5, "1", ["1"], [None], [[1.0]], [math.nan], [math.inf], [3.5e38], [10**400], [0.0, -math.inf]],
    ids=repr,
)
def test_a_column_of_numbers_refuses_everything_else(wrong: object) -> None:
    with pytest.raises(ValidationError, match=r"column of numbers|array of numbers"):
        FLOATS.validate_python(wrong)


@pytest.mark.parametrize(
    "wrong", [np.array([np.nan], dtype=np.float32), np.array([1e39]), np.array([[1.0]]), np.array(["x"])], ids=repr
)
def test_arrays_of_a_producer_are_finite_numbers(wrong: object) -> None:
    with pytest.raises(ValidationError, match="column of numbers"):
        FLOATS.validate_python(wrong)
