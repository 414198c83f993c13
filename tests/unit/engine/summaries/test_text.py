"""Counted reasons as text and read back, and texts cut on a word."""

from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.text import MAX_BYTES, CountedReason, cut, read_reasons, write_reasons

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


@given(st.text(st.sampled_from("ab 错\n"), max_size=600), st.integers(60, 300))
def test_a_text_fits_begins_as_it_was_and_says_how_much_is_left_out(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode()) <= limit
    if short == text:
        return
    head, _, left_out = short.rpartition("... and ")
    assert text.startswith(head)
    tail = text[len(head) :]
    if left_out.endswith(" words"):
        assert tail[0].isspace()
        assert int(left_out.split()[0]) == len(tail.split())
    else:
        assert int(left_out.split()[0]) == len(tail)


def test_a_long_error_ends_with_a_word() -> None:
    text = " ".join(f"word{number}" for number in range(400))
    short = cut(text)
    head, _, left_out = short.partition("... and ")
    assert text.startswith(head + " ")
    assert len(head.split()) + int(left_out.split()[0]) == 400
    assert MAX_BYTES - 50 < len(short) <= MAX_BYTES
