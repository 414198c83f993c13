"""A text cut to what Kubernetes takes, on a word."""

from typing import Final

MAX_BYTES: Final = 1_024
"""Of the note of an event; the API server refuses a longer one."""

_MORE_BYTES: Final = len("... and 1000000000 more words")


def shortened(text: str, limit: int = MAX_BYTES) -> str:
    """``text`` in at most ``limit`` bytes of UTF-8: as it is, or its first whole words and how many are left out.

    A text that begins with a word too long by itself is cut inside of it, and its characters are counted.
    """
    if len(text.encode()) <= limit:
        return text
    words = text.split()
    room = limit - _MORE_BYTES
    kept, used = 0, -1
    for word in words:
        used += len(word.encode()) + 1
        if used > room:
            break
        kept += 1
    if not kept:
        start = text.encode()[:room].decode(errors="ignore")
        return f"{start}... and {len(text) - len(start)} more"
    return f"{' '.join(words[:kept])}... and {len(words) - kept} more words"
