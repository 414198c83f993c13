"""Terminal and page call the same thing by the same word."""

from cli.terminal.words import STATUS_WORDS, to_status, to_status_word
from page.texts import get_text


def test_an_attempt_ends_in_the_words_of_the_page() -> None:
    assert {status: get_text("en", f"status.{status}") for status in STATUS_WORDS} == STATUS_WORDS


def test_a_status_is_asked_for_in_both_words() -> None:
    assert [to_status(word) for word in ("placed", "succeeded", "failed", "refused", "odd")] == [
        "succeeded", "succeeded", "failed", "failed", "odd",
    ]  # fmt: skip
    assert to_status_word("of a newer API") == "of a newer API"
