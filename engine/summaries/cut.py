"""A text cut to what Kubernetes keeps of an event, on a word."""

from typing import Final

MAX_BYTES: Final = 1_024
"""Limit of Kubernetes for the message of an event: longer ones are cut or refused."""

# Reserves more digits than any count has, so that the note never pushes the text over the limit.
_MORE_BYTES: Final = len("... and 1000000000 more words")


def cut(text: str, limit: int = MAX_BYTES) -> str:
    """Shorten ``text`` to at most ``limit`` bytes of UTF-8.

    A longer text keeps its first complete words, and ends with the number of words that are left out. If not even the
    first word fits, its beginning stays, with the number of characters that are left out.
    """
    # UTF-8 is never shorter than the text: the first comparison saves encoding texts that are too long anyway.
    if len(text) <= limit and len(text.encode()) <= limit:
        return text
    # A cut in the middle of a character of several bytes leaves bytes that are not UTF-8; they are dropped.
    head = text.encode()[: limit - _MORE_BYTES].decode(errors="ignore")
    if not text[len(head)].isspace():
        head = head[: -len(head.split()[-1])] if head.split() and not head[-1].isspace() else head
    if not head.strip():
        head = text.encode()[: limit - _MORE_BYTES].decode(errors="ignore")
        return f"{head}... and {len(text) - len(head)} more"
    return f"{head.rstrip()}... and {len(text[len(head) :].split())} more words"
