"""Page about the pods of files that loads nothing and runs nothing. Apart from ``report_file``, because a terminal
would wait for the models of reports."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from page.colours import map_colours
from page.render import build_environment
from page.texts import Language, get_text
from page.views.answered_nodes import group_answered_nodes
from page.views.log_pods import list_pods
from page.views.node_groups import FITS, PICKED, list_codes

MAX_CELLS: Final = 64
"""Devices that are drawn of a node."""


def render_log_file(log: str, rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """Render the page.

    ``rows``: as ``schedulerlog explain -o json`` has them, with a diagnosis each, and with what helps, scores and
    findings where they were looked for.
    """
    listed = list_pods(rows)
    view = {"rows": [_build_row(row) for row in listed.rows], "placed": listed.placed, "max_cells": MAX_CELLS}
    values = view | {"log": log, "language": language, "t": partial(get_text, language)}
    return build_environment().get_template("log_file.html").render(values)


def _build_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Build the view of a row: its nodes in groups, each with the colours of its devices."""
    missing = {"nodes": (), "notes": (), "timeline": (), "comparison": None, "background": None}
    diagnosis = missing | row["diagnosis"]
    groups = group_answered_nodes(diagnosis["nodes"] or (), row["node"] or None)
    parts = {"suggestions": None, "scores": None, "findings": (), **row, "diagnosis": diagnosis}
    fitting = sum(len(group.nodes) for group in groups if group.verdict in (PICKED, FITS))
    return parts | {"groups": groups, "fitting": fitting, "colours": map_colours(list_codes(groups))}
