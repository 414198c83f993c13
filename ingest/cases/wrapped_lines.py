"""Lines of a text that a terminal or a mail program broke at its width."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ingest.cases.pasted_objects import FENCE, PROMPT
from ingest.cases.pasted_rows import parse_row

_NARROWEST, _WIDEST = 60, 250
"""Characters of the widths at which lines are taken to be broken."""
_TOLERANCE: Final = 4
"""Columns by which full lines of a terminal differ: tabs and wide letters count for more than one."""
_LEAST_BREAKS: Final = 2
"""Different full lines that continue in the next one: a single one may be a long line before prose."""
SEVERAL_CELLS: Final = re.compile(r"\S {2,}\S")
_NEW_LINE: Final = re.compile(
    r"\s{2,}|[A-Z][\w./ -]*:(?:\s|$)|[-*#|>]\s|[\w.-]+: ?$|(?:apiVersion|kind|name|namespace|type|reason): "
)
"""Beginning of a line that is no rest of the line before: an indented one, a field, an item of a list."""


def unwrap_lines(lines: Sequence[str]) -> list[str]:
    """Join the lines that were broken at one width, and return the others as they are.

    A terminal breaks at its last column, a mail program before the word that would pass it.
    """
    width = max(map(len, lines), default=0)
    breaks = {index for index in range(len(lines) - 1) if _is_broken(lines[index], lines[index + 1], width)}
    if not _NARROWEST <= width <= _WIDEST or len({lines[index] for index in breaks}) < _LEAST_BREAKS:
        return list(lines)
    is_terminal = all(len(lines[index]) >= width - _TOLERANCE for index in breaks)
    return list(_join(lines, breaks, "" if is_terminal else " "))


def _is_broken(line: str, following: str, width: int) -> bool:
    """Tell whether the line is as long as the width allows, and the next one does not begin something else."""
    first_word = following.split(maxsplit=1)[:1]
    if not first_word or len(line.rstrip()) + 1 + len(first_word[0]) <= width:
        return False
    is_new = _NEW_LINE.match(following) or PROMPT.match(following) or FENCE.match(following)
    return not (is_new or SEVERAL_CELLS.search(following) or parse_row(following))


def _join(lines: Sequence[str], breaks: set[int], between: str) -> Iterator[str]:
    joined = ""
    for index, line in enumerate(lines):
        joined += line
        if index not in breaks:
            yield joined
            joined = ""
        elif not joined.endswith(" "):
            joined += between
