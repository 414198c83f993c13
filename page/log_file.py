"""What a scheduler's log says of its pods, as a page that stands for itself: nothing is loaded, nothing runs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from page.render import environment
from page.texts import Language, text
from page.views.log_pods import listed_pods


def log_file(log: str, rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """``rows``: as ``schedulerlog explain -o json`` has them, with a diagnosis each."""
    values = listed_pods(rows)._asdict() | {"log": log, "language": language, "t": partial(text, language)}
    return environment().get_template("log_file.html").render(values)
