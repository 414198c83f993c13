"""Text without control characters, which a terminal would obey and which could forge a line of a log. Pure."""

from typing import Final

_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {0x0A: "\\n", 0x0D: "\\r"}
_BUT_LINES: Final = {code: text for code, text in _CONTROLS.items() if code not in (0x09, 0x0A)}


def on_one_line(text: str) -> str:
    """Escape control characters, line breaks among them, as Python does."""
    return text.translate(_CONTROLS)


def on_lines(text: str) -> str:
    """Escape control characters as Python does, but leave line breaks and tabs as they are."""
    return text.translate(_BUT_LINES)
