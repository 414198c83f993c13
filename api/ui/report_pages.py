"""Pages of counts over time and of the report of failures, also as files."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from api.http.trends_query import DEVICE_SECONDS, INTERVALS
from api.ui.page_shell import MENDED, PageShell, build_context, select_parameters
from page.colours import choose_colours
from page.formats import format_amount, format_duration, format_hours, parse_time
from page.page_context import ROOT
from page.plots import Series, draw_bars_over_time
from page.report_file import build_view
from schemas.answers.reports import FailureReport
from schemas.codec.records import format_rfc3339
from schemas.json_types import Json

DIMENSIONS: Final = (
    "obstacle",
    "reason",
    "namespace",
    "pool",
    "model",
    "result",
    "workload",
    "queue",
    "priority_class",
    "layer",
)
COUNTS: Final = ("attempts", "nodes", "devices", *DEVICE_SECONDS)
PARAMETERS: Final = ("by", "count", "namespace", "result", "since", "until", "interval")
_NOT_BY_LAYER: Final = ("count", "result")
"""Parameters of attempts: waits by layer are those of placed pods, and counted in seconds."""
_SEARCHED: Final = {
    "obstacle": "obstacle",
    "reason": "reason",
    "namespace": "namespace",
    "workload": "workload",
    "queue": "queue",
    "result": "status",
}
"""Filter of a search for each dimension that has one."""
_NAMES: Final = {"csv": "csv", "markdown": "md", "html": "html"}


def _select_trends(request: Request) -> dict[str, str | None]:
    is_by_layer = request.query_params.get("by") == "layer"
    names = [name for name in PARAMETERS if not (is_by_layer and name in _NOT_BY_LAYER)]
    return select_parameters(request, *names)


MIN_BARS: Final = 12
SHORTEST_BAR_SECONDS: Final = 60


def find_shorter_range(trends: Json, *, has_interval: bool) -> str:
    """Find the begin of a range that the counts fill: data of three minutes fill no day. Empty if they fill half."""
    times, series = trends["times"], _list_named(trends)
    filled = (index for index in range(len(times)) if any(item["values"][index] for item, _ in series))
    first = next(filled, 0)
    if first <= len(times) / 2:
        return ""
    bar = timedelta(seconds=trends["interval_seconds"] if has_interval else SHORTEST_BAR_SECONDS)
    return format_rfc3339(min(parse_time(times[first]), parse_time(trends["until"]) - MIN_BARS * bar))


def _list_named(trends: Json, other: str = "", unknown: str = "") -> list[tuple[Json, str]]:
    """List the series with the names of those that have no key."""
    ends = [(trends.get("other"), other), (trends.get("unknown"), unknown)]
    return [*((item, "") for item in trends.get("items", [])), *((item, name) for item, name in ends if item)]


def _choose_format(trends: Json, language: str) -> Callable[[float | None], str]:
    """Choose how the sums are written: counts as numbers, waits as durations, and devices as GPU-hours."""
    if trends.get("by") == "layer":
        return partial(format_duration, language=language)
    if trends.get("count") in DEVICE_SECONDS:
        return lambda seconds: format_hours(None if seconds is None else seconds / 3600)
    return format_amount


def _to_bars(request: Request, trends: Json, item: Json, name: str = "") -> Series:
    """Convert the counts of one name to bars; they lead to the attempts behind them where a search has the filter."""
    context, key, dimension = build_context(request), item["key"], trends["by"]
    words = {"result": "status", "layer": "layer"}
    title = name or (context.get_text(f"{words[dimension]}.{key}") if dimension in words and key else key)
    ends = [*trends["times"][1:], trends["until"]]
    addresses = [_link_attempts(request, trends, key, *bounds) for bounds in zip(trends["times"], ends, strict=True)]
    return Series(key, item["values"], title, addresses if all(addresses) else ())


def _link_attempts(request: Request, trends: Json, key: str, since: str, until: str) -> str:
    """Build the address of the attempts that a series counts; empty where a search has no such filter."""
    name, context = _SEARCHED.get(trends["by"]), build_context(request)
    if not (name and key) or trends["count"] in DEVICE_SECONDS:
        return ""
    counted = {"namespace": context.get_value("namespace"), "status": context.get_value("result")}
    return context.build_url(f"{ROOT}/search", **counted | {name: key, "since": since, "until": until})


@dataclass(frozen=True, slots=True)
class ReportPages:
    shell: PageShell

    async def show_trends(self, request: Request) -> Response:
        parameters = _select_trends(request)
        answered = await self.shell.ask(request, "/trends", **parameters)
        if not answered.is_right and answered.status not in MENDED:
            return self.shell.show_problem(request, answered)
        if answered.is_right and not (parameters["since"] or parameters["until"]):
            since = find_shorter_range(answered.parse_json(), has_interval=bool(parameters["interval"]))
            shorter = await self.shell.ask(request, "/trends", **parameters | {"since": since}) if since else answered
            answered = shorter if shorter.is_right else answered
        context, body = build_context(request), answered.parse_json()
        unnamed = "report.unrecorded" if body.get("count") in DEVICE_SECONDS else "report.unknown"
        named = _list_named(body, context.get_text("report.other"), context.get_text(unnamed))
        series = [item for item, _ in named]
        bars = [_to_bars(request, body, item, name) for item, name in named]
        write_value = _choose_format(body, context.language)
        view = {
            "path": answered.path,
            "problem": None if answered.is_right else body,
            "trends": body,
            "names": [bar.title for bar in bars],
            "colours": choose_colours([bar.key for bar in bars]),
            "links": [_link_attempts(request, body, item["key"], body["since"], body["until"]) for item in series],
            "series": series,
            "plot": draw_bars_over_time(
                context.get_text("nav.trends"),
                body.get("times", []),
                bars,
                body.get("interval_seconds", 0),
                write_value,
                has_halves=write_value is not format_amount,
            ),
            "write_value": write_value,
            "dimensions": DIMENSIONS,
            "counts": COUNTS,
            "intervals": [("", "–"), *((name, name) for name in INTERVALS)],
        }
        return self.shell.show(request, "trends", view, answered.status)

    async def write_trends_table(self, request: Request) -> Response:
        """Write the rows of the page as a CSV file."""
        answered = await self.shell.ask(request, "/trends", format="csv", **_select_trends(request))
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        headers = {"Content-Disposition": 'attachment; filename="trends.csv"'}
        return Response(answered.body, headers=headers, media_type="text/csv; charset=utf-8")

    async def show_report(self, request: Request) -> Response:
        language = build_context(request).language
        parameters = select_parameters(request, "namespace", "since", "until")
        answered = await self.shell.ask(request, "/reports/failures", lang=language, **parameters)
        if not answered.is_right and answered.status not in MENDED:
            return self.shell.show_problem(request, answered)
        if not answered.is_right:
            view = {"problem": answered.parse_json(), "path": answered.path}
        else:
            view = build_view(FailureReport.model_validate_json(answered.body)) | {
                "problem": None,
                "path": answered.path,
            }
        return self.shell.show(request, "report", view, answered.status)

    async def write_report_file(self, request: Request) -> Response:
        """Write the report as a file: HTML, Markdown or CSV."""
        wanted = request.query_params.get("format", "")
        form = wanted if wanted in _NAMES else "html"
        parameters = select_parameters(request, "namespace", "since", "until")
        answered = await self.shell.ask(
            request, "/reports/failures", lang=build_context(request).language, format=form, **parameters
        )
        if not answered.is_right:
            return self.shell.show_problem(request, answered)
        headers = {"Content-Disposition": f'attachment; filename="failures.{_NAMES[form]}"'}
        return Response(answered.body, headers=headers, media_type="application/octet-stream")
