"""Words for the end of an attempt, the same as on the page. Pure."""

from typing import Final

STATUS_WORDS: Final = {"succeeded": "placed", "failed": "refused", "pending": "undecided"}
"""The page's texts have the same; a test compares them."""
_STATUSES: Final = {word: status for status, word in STATUS_WORDS.items()}


def to_status_word(status: str) -> str:
    """Convert a status of the API; an unknown status of a newer API stays as it is."""
    return STATUS_WORDS.get(status, status)


def to_status(word: str) -> str:
    """Convert our word to the API's status; the API refuses an unknown word."""
    return _STATUSES.get(word, word)
