"""The shape of a line: its text without what differs from line to line."""

import re
from typing import Final

MAX_CHARACTERS: Final = 160

_HEADER: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d+ ([^\s\]]{1,80}):\d+\] ")
_VALUES: Final = re.compile(rb'=[{\[].*|="[^"]*"?')
_NUMBERS: Final = re.compile(rb"[0-9a-fA-F]*\d[0-9a-fA-F.]*")


def derive_shape(line: bytes) -> str:
    """Derive the shape, which lines of one print statement share: values become ``…`` and numbers ``#``.

    The message of a structured klog line is kept.
    """
    # Cut first: expressions over a line of megabytes take seconds.
    line = line[: 4 * MAX_CHARACTERS]
    if header := _HEADER.match(line):
        line = header[1] + b" " + line[header.end() :]
    line = _VALUES.sub("=…".encode(), line)
    line = _NUMBERS.sub(b"#", line)
    return to_printable(line)[:MAX_CHARACTERS].strip()


def to_printable(text: bytes) -> str:
    """Replace the characters that would move a terminal's cursor or ring its bell."""
    return "".join(character if character.isprintable() else "·" for character in text.decode(errors="replace"))
