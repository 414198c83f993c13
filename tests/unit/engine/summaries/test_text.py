"""Counted reasons as text and read back."""

from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.text import CountedReason, read_reasons, write_reasons

codes = st.text(st.characters(categories=("L", "N"), codec="ascii"), min_size=1, max_size=20)


def test_every_part_is_read_by_itself() -> None:
    assert read_reasons("3/8 CardInsufficientCore, NodeInsufficientDevice, 10/16 NumaNotFit and more") == [
        CountedReason(3, 8, "CardInsufficientCore"),
        None,
        CountedReason(10, 16, "NumaNotFit"),
    ]


@given(st.dictionaries(codes, st.integers(0, 2**31), min_size=1, max_size=8), st.integers(0, 2**31))
def test_what_was_written_is_read_back(counts: dict[str, int], devices: int) -> None:
    reasons = read_reasons(write_reasons(counts, devices))
    assert {reason.code: reason.refused for reason in reasons if reason} == counts
    assert {reason.devices for reason in reasons if reason} == {devices}


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert len(read_reasons(text)) == text.count(", ") + 1
