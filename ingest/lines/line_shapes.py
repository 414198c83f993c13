"""The shape of a line: its text without what differs from line to line."""

import re
from typing import Final

MAX_CHARACTERS: Final = 160

_HEADER: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d+ ([^\s\]]{1,80}):\d+\] ")
_VALUES: Final = re.compile(rb'=[{\[].*|="[^"]*"?')
_NUMBERS: Final = re.compile(rb"[0-9a-fA-F]*\d[0-9a-fA-F.]*")


def shape_of(line: bytes) -> str:
    """Values of keys become ``…`` and numbers ``#``: two lines of one print statement have one shape.

    The message of a structured klog line is kept.
    """
    # Cut first: expressions over a line of megabytes take seconds.
    line = line[: 4 * MAX_CHARACTERS]
    if header := _HEADER.match(line):
        line = header[1] + b" " + line[header.end() :]
    line = _VALUES.sub("=…".encode(), line)
    line = _NUMBERS.sub(b"#", line)
    return printable(line)[:MAX_CHARACTERS].strip()


def printable(text: bytes) -> str:
    """The text without characters that would move a terminal's cursor or ring its bell."""
    return "".join(character if character.isprintable() else "·" for character in text.decode(errors="replace"))
