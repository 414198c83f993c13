"""Kubernetes quantities, against exact rational arithmetic."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hami.quantities import is_quantity, parse_whole, round_up

SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "Ki": Fraction(1024),
    "Gi": Fraction(2**30),
    "e-2": Fraction(1, 100),
    "E3": Fraction(1000),
}


@given(st.integers(-(10**12), 10**12), st.integers(0, 6), st.sampled_from(sorted(SCALES)))
def test_a_quantity_is_what_its_text_says(digits: int, decimals: int, suffix: str) -> None:
    padded = f"{abs(digits):0{decimals + 1}d}"
    number = f"{padded[: len(padded) - decimals]}.{padded[len(padded) - decimals :]}" if decimals else padded
    text = f"{'-' if digits < 0 else ''}{number}{suffix}"
    exact = Fraction(digits, 10**decimals) * SCALES[suffix]
    assert parse_whole(text) == (exact if exact.denominator == 1 and abs(exact) < 2**63 else None)
    away = ceil(abs(exact)) * (-1 if exact < 0 else 1)
    assert round_up(text) == max(-(2**63), min(away, 2**63 - 1))


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1K", "1ki", "0x10", "1e", "NaN", "Infinity", "1_000", "٣", "1" * 65])
def test_what_is_no_quantity_is_none(text: str) -> None:
    assert not is_quantity(text)
    assert parse_whole(text) is None
    assert round_up(text) == 0


def test_the_last_of_many_decimals_counts() -> None:
    assert parse_whole("1.00000000000000000000000000000000000000000001") is None


def test_beyond_64_bits_there_is_no_whole_number() -> None:
    assert parse_whole(str(2**63 - 1)) == 2**63 - 1
    assert parse_whole(str(2**63)) is None
    assert parse_whole("9Ei") is None
