"""Lines of a text that a terminal or a mail program broke at its width, and texts that YAML writes in several lines."""

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
    r"\s{2,}|[A-Z][\w./ -]*:(?:\s|$)|[-*#|>]\s|[\w.-]+: ?$|(?:apiVersion|kind|name|namespace|type|reason): |"
    r"\{\"|\[?(?:\d{4}-\d\d-\d\d[ T,]|\d\d:\d\d:\d\d\b)"
)
"""Beginning of a line that is no rest of the line before: an indented one, a field, an item, an object, a time."""

_TABLE: Final = re.compile(r"^\s*(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS +AGE *$")
"""Header of the table of pods, whose other columns a narrow terminal has put below it."""
_LATER_COLUMNS: Final = re.compile(r"^\s*IP +NODE(?: +NOMINATED NODE(?: +READINESS GATES)?)?\s*$")
_CONSOLE_REASON: Final = re.compile(r"^\s*PodUnschedulable\s*$")
_CONSOLE_ITEM: Final = re.compile(r"^\s*Cannot schedule pods: (?P<text>\S.*)$")
_SCALAR: Final = re.compile(r"^(?P<indent>\s*(?:- )?)(?P<field>[A-Za-z][\w.-]*: +)(?P<text>[>|][+-]?|'.*|\".*)$")
"""Field of YAML whose text is quoted, or stands in the lines below it."""
_MAX_SCALAR_LINES: Final = 40


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


def join_table_rows(lines: Sequence[str]) -> list[str]:
    """Join each row of a wide table of pods with its later columns, which a narrow terminal has put below it."""
    joined: list[str] = []
    position, is_split = 0, False
    while position < len(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        begins = bool(_TABLE.match(lines[position]) and _LATER_COLUMNS.match(following))
        is_split = begins or (is_split and bool(lines[position].strip()) and following[:1].isspace())
        joined.append(f"{lines[position].rstrip()}   {following.strip()}" if is_split else lines[position])
        position += 1 + is_split
    return joined


def join_console_lines(lines: Sequence[str]) -> list[str]:
    """Join what Google's console lists of one pod: a reason and a line for each text that keeps it from nodes."""
    joined: list[str] = []
    for index, line in enumerate(lines):
        item = _CONSOLE_ITEM.match(line)
        if item and joined and _CONSOLE_ITEM.match(joined[-1]):
            joined[-1] = f"{joined[-1].rstrip(' .')}, {item['text'].rstrip(' .')}"
        elif not (_CONSOLE_REASON.match(line) and joined and _CONSOLE_ITEM.match(joined[-1])) or (
            index + 1 == len(lines) or not _CONSOLE_ITEM.match(lines[index + 1])
        ):
            joined.append(line)
    return joined


def join_scalars(lines: Sequence[str]) -> list[str]:
    """Join the lines of quoted and folded texts of YAML that stand between prose, without their quotation marks."""
    joined: list[str] = []
    position = 0
    while position < len(lines):
        match = _SCALAR.match(lines[position])
        scalar, count = _read_scalar(lines, position, match) if match else (None, 1)
        joined.append(lines[position] if scalar is None or match is None else match["indent"] + match["field"] + scalar)
        position += count
    return joined


def _read_scalar(lines: Sequence[str], start: int, match: re.Match[str]) -> tuple[str | None, int]:
    """Read the text that begins in a line, and count its lines; None for one that does not end."""
    text = match["text"].rstrip()
    if text[0] in ">|":
        margin = len(match["indent"])
        end = start + 1
        while end < len(lines) and lines[end].strip() and len(lines[end]) - len(lines[end].lstrip()) > margin:
            end += 1
        return " ".join(line.strip() for line in lines[start + 1 : end]) or None, max(end - start, 1)
    mark = text[0]
    for end in range(start, min(start + _MAX_SCALAR_LINES, len(lines))):
        if end > start:
            text = f"{text} {lines[end].strip()}"
        has_pairs = len(text) > 1 and text.count(mark) % 2 == 0
        is_closed = has_pairs and text.endswith(mark) and not text.endswith("\\" + mark)
        if is_closed and (end > start or mark == "'"):
            return text[1:-1].replace(mark * 2, mark), end - start + 1
        if is_closed:
            break
    return None, 1
