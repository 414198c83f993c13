"""Rows as CSV, for spreadsheets and other readers of tables. Pure."""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final

CSV: Final = "text/csv"
# Excel, LibreOffice and Google Sheets read a cell that begins so as a formula, which can send the sheet's content away
# or start a program (OWASP, "CSV Injection"). An apostrophe before it makes it a text.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

_COMMANDS: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Unicode categories of controls, format characters, surrogates, private ones and separators of lines."""


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write rows as RFC 4180, with a first line of column names. None is an empty cell; numbers stay numbers."""
    text = io.StringIO(newline="")
    # Quoted wherever it is a text: a line feed or a separator in one never begins another cell.
    writer = csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(columns)
    writer.writerows([_to_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _to_cell(value: Any) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = _escape_commands(value)
    return f"'{text}" if value.lstrip(" ").startswith(_FORMULA) else text


def _escape_commands(text: str) -> str:
    """Escape what a terminal obeys or hides: a table is often read with curl."""
    if text.isprintable():
        return text
    return "".join(char.encode("unicode_escape").decode() if _is_command(char) else char for char in text)


def _is_command(char: str) -> bool:
    return char not in "\n\t" and unicodedata.category(char) in _COMMANDS
