"""Rendering of a page: a template with its view, as bytes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from page import formats
from page.commands import write_curl, write_kubectl, write_kubectl_simulation, write_terminal_command
from page.device_fills import draw_devices, group_nodes
from page.page_context import NAVIGATION, ROOT, PageContext
from page.time_axis import draw_time_axis
from page.timelines import draw_episodes, draw_waits, find_ends, map_pod_colours
from page.views.amounts import to_natural_order
from page.views.fleet import add_nodes, compute_share, list_excluded
from page.views.translations import get_meaning, translate_gap, write_exclusion

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"
_KINDS: Final = {
    401: "unknown_caller",
    403: "not_allowed",
    404: "not_found",
    410: "expired",
    429: "unavailable",
    503: "unavailable",
}


@cache
def build_environment() -> Environment:
    """Build the templates' environment. Every value is escaped, a missing one is an error, and no value can write a
    control character."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=formats.escape_hidden,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "moment": formats.format_moment,
        "second": formats.format_second,
        "ticks": formats.format_code,
        "duration": _format_duration,
        "since": _format_age,
        "span": _format_span,
        "score": formats.format_score,
        "amount": formats.format_amount,
        "hours": formats.format_hours,
        "mib": formats.format_mib,
        "requested": formats.format_requests,
        "by_name": _sort_by_name,
    }
    environment.globals |= {
        "ROOT": ROOT,
        "NAVIGATION": NAVIGATION,
        "draw_episodes": draw_episodes,
        "draw_time_axis": draw_time_axis,
        "draw_waits": draw_waits,
        "find_ends": find_ends,
        "map_pod_colours": map_pod_colours,
        "write_curl": write_curl,
        "write_kubectl": write_kubectl,
        "write_terminal_command": write_terminal_command,
        "write_kubectl_simulation": write_kubectl_simulation,
        "get_meaning": get_meaning,
        "write_exclusion": write_exclusion,
        "translate_gap": translate_gap,
        "add_nodes": add_nodes,
        "compute_share": compute_share,
        "list_excluded": list_excluded,
        "group_nodes": group_nodes,
        "draw_devices": draw_devices,
    }
    return environment


def _sort_by_name(items: Iterable[Any], attribute: str = "") -> list[Any]:
    """Sort names, or items by the name in their attribute."""
    return sorted(items, key=lambda item: to_natural_order(item[attribute] if attribute else item))


@pass_context
def _format_duration(context: Context, seconds: float | None) -> str:
    return formats.format_duration(seconds, context["page"].language)


@pass_context
def _format_age(context: Context, text: str | None, now: datetime) -> str:
    return formats.format_age(text, now, context["page"].language)


@pass_context
def _format_span(context: Context, text: str) -> str:
    return formats.format_span(text, context["page"].language)


def render(template: str, context: PageContext, view: Mapping[str, Any]) -> bytes:
    """Render ``templates/{template}.html`` to HTML.

    In it ``page`` is the context, ``t`` looks a text up by its key, ``l`` takes the reader's language of a text that is
    in both, and the entries of ``view`` have their own names.
    """
    values = {"page": context, "t": context.get_text, "l": context.choose_text, "now": context.now}
    return build_environment().get_template(f"{template}.html").render(values | dict(view)).encode("utf-8", "replace")


def render_error(context: PageContext, status: int, error: str, next_step: str, code: str = "") -> bytes:
    """Render the page that replaces one that can't be shown."""
    view = {"kind": get_error_kind(status), "status": status, "error": error, "next_step": next_step, "code": code}
    return render("error", context, view)


def get_error_kind(status: int) -> str:
    """Return the designed state of an error: the last part of its text's key."""
    if status in _KINDS:
        return _KINDS[status]
    return "failed" if status >= 500 else "bad_request"
