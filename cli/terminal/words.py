"""How the end of an attempt is written: as on the page. Pure."""

from typing import Final

STATUS_WORDS: Final = {"succeeded": "placed", "failed": "refused", "pending": "undecided"}
"""The page's texts have the same; a test compares them."""
_ASKED: Final = {word: status for status, word in STATUS_WORDS.items()}


def status_word(status: str) -> str:
    """A status of a newer API as it is."""
    return STATUS_WORDS.get(status, status)


def asked_status(word: str) -> str:
    """The API's status for a word of ours; what is none is left to the API to refuse."""
    return _ASKED.get(word, word)
