"""Output to the terminal: every line and cell passes ``safe_text`` here, so that no command can forget it.

A person gets colours and text that is folded at the terminal's width, by rich. A pipe gets whole plain lines, for which
rich is not imported: it takes a tenth of the time of a short command.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli.terminal.safe_text import on_one_line, to_printable

if TYPE_CHECKING:
    from rich.console import Console

_RULE_CHARACTERS: Final = 80
_UNLIMITED: Final = 100_000
"""Columns of a pipe: a program that reads a table wants whole names."""
_LEAST_FOLDED: Final = 14
_BETWEEN: Final = 2
"""Columns between the cells of a table."""


class Screen:
    """Prints to standard output: colours and the terminal's width for a person, whole plain lines for a pipe."""

    _console: "Console | None" = None

    def __init__(self) -> None:
        is_person = sys.stdout.isatty()
        has_colours = is_person and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._width = _find_width(is_person=is_person)
        if self._width == _UNLIMITED and not has_colours:
            return
        from rich.console import Console

        self._console = Console(
            width=self._width,
            # None: no escape code at all. NO_COLOR alone would leave rich its bold.
            color_system="auto" if has_colours else None,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
        )

    def print_line(self, text: str = "", style: str = "", *, indent: int = 0) -> None:
        """Print a paragraph, folded at the width; all of its lines are indented."""
        if self._console is None:
            _write(f"{' ' * indent}{line}" for line in to_printable(text).split("\n"))
            return
        from rich.padding import Padding
        from rich.text import Text

        self._print(self._console, Padding(Text(to_printable(text), style=style), (0, 0, 0, indent), expand=False))

    def print_table(
        self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, indent: int = 0, is_wide: bool = False
    ) -> None:
        """Print a table as kubectl does.

        A column whose name begins with ``#`` is aligned to the right; the first one, which names the thing, is never
        folded, and no other one where the table may be wider than the terminal. Where the columns have no room, each
        row is some lines: what its first column has, and below it the others with their names.
        """
        # rich gives up spaces at the end of a cell where it aligns to the right.
        cells = [[on_one_line(cell).rstrip() for cell in row] for row in rows]
        if self._console is None:
            _write(f"{' ' * indent}{line}" for line in _align(columns, cells))
            return
        if not is_wide and measure_table(columns, cells) + indent > self._console.width:
            self._print_stacked([name.lstrip("#") for name in columns], cells, indent)
            return
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for index, name in enumerate(columns):
            side: Any = "right" if name.startswith("#") else "left"
            table.add_column(name.lstrip("#"), justify=side, overflow="fold", no_wrap=index == 0)
        for row in cells:
            table.add_row(*map(Text, row))
        self._print(self._console, Padding(table, (0, 0, 0, indent), expand=False), _UNLIMITED if is_wide else None)

    def _print_stacked(self, columns: Sequence[str], rows: Sequence[Sequence[str]], indent: int) -> None:
        for row in rows:
            self.print_line(f"{columns[0]} {row[0]}".rstrip(), "bold", indent=indent)
            for name, cell in zip(columns[1:], row[1:], strict=True):
                if cell:
                    self.print_line(f"{name} {cell}", indent=indent + 2)

    def skip_line(self) -> None:
        _write([""])

    def draw_rule(self) -> None:
        """Draw a line between two answers."""
        self.print_line("-" * min(self._width, _RULE_CHARACTERS), "dim")

    def _print(self, console: "Console", renderable: Any, width: int | None = None) -> None:
        console.width = width or self._width
        with console.capture() as captured:
            console.print(renderable)
        _write(captured.get().splitlines())


def _write(lines: Iterable[str]) -> None:
    # rich fills lines with spaces up to the width, and the last column of a table has nothing behind it.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))
    # A watch is read as it comes, also in a pipe.
    sys.stdout.flush()


def _align(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the cells of a table without colours or folding."""
    lines = [[name.lstrip("#") for name in columns], *rows]
    widths = [max(map(_measure, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = []
        for name, text, width in zip(columns, line, widths, strict=True):
            spaces = " " * (width - _measure(text))
            padded.append(f"{spaces}{text}" if name.startswith("#") else f"{text}{spaces}")
        yield "  ".join(padded)


def _measure(text: str) -> int:
    """Measure the columns of a terminal that the text takes: a Chinese character takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def emit(text: str) -> None:
    """Print a document for programs, or a line of one; escapes only what a terminal would obey."""
    sys.stdout.write(to_printable(text) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Print a line to standard error, without colours."""
    sys.stderr.write(to_printable(text) + "\n")


def format_count(number: int, noun: str) -> str:
    """Write ``1 attempt`` or ``1,200 attempts``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def measure_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Measure the least width of a table: the first column and numbers are never folded, others not to shreds."""
    widths = [max(len(name.lstrip("#")), *(len(row[index]) for row in rows), 0) for index, name in enumerate(columns)]
    least_widths = [
        width if index == 0 or name.startswith("#") else min(width, _LEAST_FOLDED)
        for index, (name, width) in enumerate(zip(columns, widths, strict=True))
    ]
    return sum(least_widths) + _BETWEEN * (len(columns) - 1)


def _find_width(*, is_person: bool) -> int:
    if columns := os.environ.get("COLUMNS", ""):
        return max(int(columns), 40) if columns.isdecimal() else 80
    return shutil.get_terminal_size((80, 24)).columns if is_person else _UNLIMITED
