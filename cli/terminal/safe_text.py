"""Text that a terminal shows and does not obey.

Names, messages and log lines come from the cluster and may hold anything: escape codes that rewrite the screen or the
window's title, marks that turn the direction of the text, characters without a width.
"""

import unicodedata
from typing import Final

_INERT: Final = {"\n": "\n", "\t": "    "}
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Controls, format characters (direction, joiners, tags), surrogates, private ones, separators of lines."""


def to_printable(text: str) -> str:
    """Write every character that is a command to a terminal, or invisible, as ``\\xNN`` or ``\\uNNNN``.

    Line breaks remain, a tab becomes four spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_INERT.get(char) or (_escape(char) if _is_hidden(char) else char) for char in text)


def on_one_line(text: str) -> str:
    """Escape like ``to_printable``, with line breaks as spaces: for a cell of a table."""
    return to_printable(" ".join(text.splitlines()) if "\n" in text else text)


def find_hidden(text: str) -> set[str]:
    """Find the characters that ``to_printable`` would escape."""
    if text.isascii() and text.isprintable():
        return set()
    return {char for char in text if char not in _INERT and _is_hidden(char)}


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
