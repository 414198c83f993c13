"""Rows as CSV, for spreadsheets and other readers of tables. Pure."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, Final

CSV: Final = "text/csv"
# Excel, LibreOffice and Google Sheets read a cell that begins so as a formula, which can send the sheet's content away
# or start a program (OWASP, "CSV Injection"). An apostrophe before it makes it a text.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


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
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value
