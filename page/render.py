"""Renders a page: a template with its view, as bytes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from page import formats
from page.commands import as_curl, as_kubectl, at_terminal, simulated_by_kubectl
from page.episode_strip import episode_strip
from page.gantt import holders
from page.page_context import NAVIGATION, ROOT, PageContext
from page.views.constraints import exclusion_sentence
from page.views.error_meanings import meaning_of
from page.views.natural_order import natural_order
from page.views.source_gaps import source_gap

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
def environment() -> Environment:
    """The templates. Every value is escaped, a missing one is an error, and no value can write a control character."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=formats.visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "moment": formats.moment,
        "second": formats.to_second,
        "ticks": formats.ticks,
        "duration": _duration,
        "since": _since,
        "span": _span,
        "score": formats.score,
        "amount": formats.amount,
        "hours": formats.hours,
        "mib": formats.mib,
        "requested": formats.requested,
        "by_name": _by_name,
    }
    made.globals |= {
        "ROOT": ROOT,
        "NAVIGATION": NAVIGATION,
        "episode_strip": episode_strip,
        "holders": holders,
        "as_curl": as_curl,
        "as_kubectl": as_kubectl,
        "at_terminal": at_terminal,
        "simulated_by_kubectl": simulated_by_kubectl,
        "meaning_of": meaning_of,
        "exclusion_sentence": exclusion_sentence,
        "source_gap": source_gap,
    }
    return made


def _by_name(items: Iterable[Any], attribute: str = "") -> list[Any]:
    """Names, or what has its name in the attribute."""
    return sorted(items, key=lambda item: natural_order(item[attribute] if attribute else item))


@pass_context
def _duration(context: Context, seconds: float | None) -> str:
    return formats.duration(seconds, context["page"].language)


@pass_context
def _since(context: Context, text: str | None, now: datetime) -> str:
    return formats.since(text, now, context["page"].language)


@pass_context
def _span(context: Context, text: str) -> str:
    return formats.span(text, context["page"].language)


def render(template: str, context: PageContext, view: Mapping[str, Any]) -> bytes:
    """The HTML of ``templates/{template}.html``.

    In it ``page`` is the context, ``t`` looks a text up by its key, ``l`` takes the reader's language of a text that is
    in both, and the entries of ``view`` have their own names.
    """
    values = {"page": context, "t": context.text, "l": context.in_language, "now": context.now}
    return environment().get_template(f"{template}.html").render(values | dict(view)).encode("utf-8", "replace")


def render_error(context: PageContext, status: int, error: str, next_step: str, code: str = "") -> bytes:
    """The page in the place of one that can't be shown."""
    view = {"kind": error_kind(status), "status": status, "error": error, "next_step": next_step, "code": code}
    return render("error", context, view)


def error_kind(status: int) -> str:
    """Which of the designed states an error is: the last part of its text's key."""
    if status in _KINDS:
        return _KINDS[status]
    return "failed" if status >= 500 else "bad_request"
