"""Texts that are too long: cut on a word, and counted."""

from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.cut import MAX_BYTES, cut


@given(st.text(st.sampled_from("ab 错\n"), max_size=600), st.integers(60, 300))
def test_a_text_fits_begins_as_it_was_and_says_how_much_is_left_out(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode()) <= limit
    if short == text:
        return
    kept, _, left_out = short.rpartition("... and ")
    assert text.startswith(kept)
    rest = text[len(kept) :]
    if left_out.endswith(" words"):
        assert rest[0].isspace()
        assert int(left_out.split()[0]) == len(rest.split())
    else:
        assert int(left_out.split()[0]) == len(rest)


def test_a_long_error_ends_with_a_word() -> None:
    text = " ".join(f"word{number}" for number in range(400))
    short = cut(text)
    kept, _, left_out = short.partition("... and ")
    assert text.startswith(kept + " ")
    assert len(kept.split()) + int(left_out.split()[0]) == 400
    assert MAX_BYTES - 50 < len(short) <= MAX_BYTES
