"""Readers of annotations: whatever text stands there, they return, or raise their own error."""

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.hami import allocation, node_lock, node_registration, registration
from engine.hami.handshake import is_given_up, parse_handshake
from engine.hami.quantities import is_quantity, parse_whole, round_up
from tests.support.stress import count_examples

NOW = datetime(2026, 11, 21, 3, 0, 0)  # noqa: DTZ001 - a handshake's time names no zone
ABSURD = ["9" * 30, "-" + "9" * 30, "1e308", "1E-300", "-0", "0x10", "١٢", "1Ki", "5m", "7M", "NaN", "Infinity"]
PIECES = st.sampled_from([",", ":", ";", "|", "[", "]", "{", "}", '"', "=", "\0", "\ud800", *ABSURD])
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join), st.sampled_from(ABSURD))
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    SIMPLE, lambda values: st.lists(values, max_size=4) | st.dictionaries(TEXTS, values, max_size=4), max_leaves=12
)

READERS: dict[str, tuple[Callable[[str], object], type[Exception]]] = {
    "registration": (registration.decode_registration, AssertionError),
    "pair scores": (node_registration.decode_pair_scores, AssertionError),
    "a Metax registration": (lambda text: registration.decode_metax(text, "a", "m"), AssertionError),
    "devices": (allocation.decode_devices, allocation.AllocationError),
    "MIG placements": (allocation.decode_mig, allocation.AllocationError),
    "a handshake": (lambda text: is_given_up(parse_handshake(text), 0, NOW), AssertionError),
    "a node lock": (node_lock.parse_lock, node_lock.NodeLockError),
    "the owner of a lock": (node_lock.parse_owner, AssertionError),
    "what to do about a lock": (
        lambda text: node_lock.choose_step(text, ("d", "p"), NOW.astimezone(), timedelta(minutes=5)),
        node_lock.NodeLockError,
    ),
}
"""Readers of a text, each with the one exception that it may raise; AssertionError: none."""


@pytest.mark.parametrize("name", READERS)
@given(text=TEXTS)
@settings(max_examples=count_examples(15))
def test_any_text(name: str, text: str) -> None:
    read, error = READERS[name]
    with contextlib.suppress(error):
        read(text)


SCALES = {
    "": Decimal(1),
    "m": Decimal("1e-3"),
    "u": Decimal("1e-6"),
    "n": Decimal("1e-9"),
    "e3": Decimal(1000),
    "E-2": Decimal("0.01"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ei": Decimal(2**60),
}


@given(st.integers(-(10**25), 10**25) | st.integers(-9_999, 9_999), st.sampled_from(sorted(SCALES)))
def test_a_quantity_is_its_exact_value_or_none(number: int, suffix: str) -> None:
    exact = Context(prec=60).multiply(Decimal(number), SCALES[suffix])
    fits = exact == exact.to_integral_value() and -(2**63) <= exact < 2**63
    assert parse_whole(f"{number}{suffix}") == (int(exact) if fits else None)


@given(st.one_of(SIMPLE, JSON))
@example(10**5_000)
@example("9" * 5_000)
@example("1e99999999999999999999")
@settings(max_examples=count_examples(30))
def test_any_quantity_at_all(value: Any) -> None:
    assert isinstance(is_quantity(value), bool)
    assert -(2**63) <= round_up(value) < 2**63
    number = parse_whole(value)
    assert number is None or -(2**63) <= number < 2**63
