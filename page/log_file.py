"""Page about the pods of a scheduler's log that loads nothing and runs nothing. Apart from ``report_file``, because a
terminal would wait for the models of reports."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from page.render import build_environment
from page.texts import Language, get_text
from page.views.log_pods import list_pods


def render_log_file(log: str, rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """Render the page. ``rows``: as ``schedulerlog explain -o json`` has them, with a diagnosis each."""
    values = list_pods(rows)._asdict() | {"log": log, "language": language, "t": partial(get_text, language)}
    return build_environment().get_template("log_file.html").render(values)
