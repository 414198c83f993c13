"""Text that a terminal shows and does not obey.

Names, messages and log lines come from the cluster and may hold anything: escape codes that rewrite the screen or the
window's title, marks that turn the direction of the text, characters without a width.
"""

import unicodedata
from typing import Final

_INERT: Final = {"\n": "\n", "\t": "    "}
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Controls, format characters (direction, joiners, tags), surrogates, private ones, separators of lines."""


def printable(text: str) -> str:
    """The text with every character that is a command to a terminal, or invisible, written as ``\\xNN`` or ``\\uNNNN``.

    Line breaks remain, a tab becomes four spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_INERT.get(char) or (_escaped(char) if _is_hidden(char) else char) for char in text)


def on_one_line(text: str) -> str:
    """The same, with line breaks as spaces: for a cell of a table."""
    return printable(" ".join(text.splitlines()) if "\n" in text else text)


def hidden_characters(text: str) -> set[str]:
    """Those that ``printable`` would write otherwise; line breaks and tabs are none."""
    if text.isascii() and text.isprintable():
        return set()
    return {char for char in text if char not in _INERT and _is_hidden(char)}


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
