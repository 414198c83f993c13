"""A text cut to what Kubernetes keeps of an event, on a word."""

from typing import Final

MAX_BYTES: Final = 1_024
"""Where Kubernetes cuts the message of an event, or refuses it."""

# Reserved with more digits than any count has, so that the note never pushes the text over the limit.
_MORE_BYTES: Final = len("... and 1000000000 more words")


def cut(text: str, limit: int = MAX_BYTES) -> str:
    """``text`` in at most ``limit`` bytes of UTF-8: as it is, or its first whole words and how many are left out.

    Where not even the first word fits, its beginning, and how many characters are left out.
    """
    # UTF-8 is never shorter than the text: the first comparison saves encoding texts that are too long anyway.
    if len(text) <= limit and len(text.encode()) <= limit:
        return text
    # A cut in the middle of a character of several bytes leaves a rest that is not UTF-8; it is dropped.
    kept = text.encode()[: limit - _MORE_BYTES].decode(errors="ignore")
    if not text[len(kept)].isspace():
        kept = kept[: -len(kept.split()[-1])] if kept.split() and not kept[-1].isspace() else kept
    if not kept.strip():
        kept = text.encode()[: limit - _MORE_BYTES].decode(errors="ignore")
        return f"{kept}... and {len(text) - len(kept)} more"
    return f"{kept.rstrip()}... and {len(text[len(kept) :].split())} more words"
