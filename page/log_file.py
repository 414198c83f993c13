"""What a scheduler's log says of its pods, as a page that stands for itself: nothing is loaded, nothing runs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from page.render import environment
from page.texts import Language, text

_PLACED = ("placed", "ended")


def log_file(log: str, rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """``rows``: as ``schedulerlog explain -o json`` has them, with a diagnosis each. Waiting pods come first."""
    ordered = sorted(rows, key=lambda row: row["diagnosis"]["state"] in _PLACED)
    placed = sum(row["diagnosis"]["state"] in _PLACED for row in rows)
    values = {"log": log, "rows": ordered, "placed": placed, "language": language, "t": partial(text, language)}
    return environment().get_template("log_file.html").render(values)
