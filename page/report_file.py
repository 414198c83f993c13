"""Report of failures as a file: a page of its own, Markdown or CSV."""

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, Literal

from page.colours import choose_colours
from page.formats import escape_hidden, format_duration, format_hours, format_mib, format_second
from page.plots import Series, draw_bars_over_time, draw_bars_side_by_side, find_highest_bar
from page.render import build_environment
from page.texts import get_text
from page.views.amounts import is_wait_complete
from schemas.answers.reports import FailureReport, Percentiles

Row = tuple[str, str, str, Any]
USAGE: Final = ("devices", "held_gpu_hours", "waiting_pods", "waiting_gpu_hours", "placed_gpu_hours")
"""Numbers of a namespace, in the order of their columns."""
LAYER_NUMBERS: Final = ("placed_pods", "placed_seconds", "waiting_pods", "waiting_seconds")
"""Numbers of a layer, in the order of their columns."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that spreadsheets read as a formula (OWASP, "CSV Injection"), also after spaces."""

_CODE: Final = re.compile(r"(?<![`\\])`([^`\\]+)`(?!`)")
"""Text that every reader of Markdown shows as code, in which nothing is a tag and an escape would be shown."""
_MARKUP: Final = str.maketrans({"<": "&lt;", "\\": "\\\\", "`": "\\`", "[": "\\["})


def write_file(report: FailureReport, form: Literal["csv", "markdown", "html"]) -> str:
    """Write the file's text."""
    return {"csv": _write_csv, "markdown": _write_markdown, "html": _write_html}[form](report)


def list_numbers(report: FailureReport) -> Iterator[Row]:
    """Iterate over every number of the report, as section, key, measure and value."""
    for name in ("attempts", "failed", "failed_before", "bind_failed", "bind_failed_before"):
        yield "attempts", "", name, getattr(report, name)
    for section, reasons in (("obstacle", report.obstacles), ("reason", report.reasons)):
        for reason in reasons:
            for name in ("attempts", "attempts_before", "devices"):
                yield section, reason.code, name, getattr(reason, name)
    for section in ("namespaces", "pools"):
        for item in getattr(report, section):
            yield section, item.key, "failed", item.failed
            yield section, item.key, "failed_before", item.failed_before
    for section in ("waiting", "placed"):
        waited = getattr(report, section)
        yield section, "", "pods", waited.pods
        yield section, "", "gpu_hours", waited.gpu_hours
        for cause in waited.causes:
            yield section, cause.cause, "pods", cause.pods
            yield section, cause.cause, "gpu_hours", cause.gpu_hours
    for layer in report.layers:
        for name in LAYER_NUMBERS:
            yield "layer", layer.layer, name, getattr(layer, name)
    for usage in report.usage:
        for name, value in usage:
            if name != "namespace":
                yield "usage", usage.namespace, name, value
    for section in ("time_to_placement", "time_to_start"):
        for name, value in getattr(report, section):
            yield section, "", name, value
    for name, value in report.fragmentation or ():
        yield "fragmentation", "", name, value
    for finding in report.findings:
        yield "findings", finding.finding, "count", finding.count
    if change := report.best_change:
        yield "best_change", f"{change.constraint} {change.where}".strip(), "pods", change.pods


def _write_csv(report: FailureReport) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["section", "key", "measure", "value"])
    # The quote turns a name that a spreadsheet would read as a formula into a text.
    rows = (
        (section, f"'{key}" if key.lstrip(" ").startswith(_FORMULA) else key, name, "" if value is None else value)
        for section, key, name, value in list_numbers(report)
    )
    writer.writerows(rows)
    return file.getvalue()


def build_view(report: FailureReport) -> dict[str, Any]:
    """Build the view of ``report_body.html``."""
    say = partial(get_text, report.language)
    over_time = [
        *(Series(item.key, item.values) for item in report.over_time.items),
        *(
            Series("", item.values, say(f"report.{name}"))
            for name in ("other", "unknown")
            if (item := getattr(report.over_time, name))
        ),
    ]
    causes = {
        name: [(cause.cause or say("report.unknown"), cause.gpu_hours) for cause in getattr(report, name).causes]
        for name in ("waiting", "placed")
    }
    plots = {
        "over_time": draw_bars_over_time(
            say("report.over_time"), report.over_time.times, over_time, report.over_time.interval_seconds
        ),
        **{
            name: draw_bars_side_by_side(say(f"report.{name}"), bars, "h") if bars else ""
            for name, bars in causes.items()
        },
    }
    colours = choose_colours([series.key for series in over_time])
    legend = [(series.title or series.key, colour) for series, colour in zip(over_time, colours, strict=True)]
    return {
        "report": report,
        "plots": plots,
        "legend": legend,
        "highest": find_highest_bar(over_time),
        "layer_columns": LAYER_NUMBERS,
        "format_layer": partial(_format_layer, report.language),
        "usage_columns": USAGE,
        "format_usage": format_usage,
        "format_seconds": _format_seconds,
        "describe_waits": partial(_describe_waits, report, say),
    }


def _write_html(report: FailureReport) -> str:
    values = build_view(report) | {"t": partial(get_text, report.language)}
    return build_environment().get_template("report_file.html").render(values)


def _format_seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def _format_layer(language: str, name: str, amount: float) -> str:
    """Format a number of a layer: a count of pods, or a time."""
    return format_duration(amount, language) if name.endswith("seconds") else f"{amount:,}"


def format_usage(amount: float) -> str:
    """Format a number of a namespace: a count, or GPU-hours."""
    return f"{amount:,}" if isinstance(amount, int) else format_hours(amount)


def _write_markdown(report: FailureReport) -> str:
    say = partial(get_text, report.language)
    return "\n".join(_write_lines(report, say)) + "\n"


def _write_lines(report: FailureReport, say: Any) -> Iterator[str]:
    yield f"# {say('report.title')}"
    where = f", {report.namespace}" if report.namespace else ""
    times = f"{format_second(report.since)} – {format_second(report.until)} UTC"
    yield f"\n{_escape_cell(report.cluster)}{where}: {times}\n"
    yield say(
        "report.summary", attempts=report.attempts, failed=report.failed, before=_format_number(report.failed_before)
    )
    if report.bind_failed or report.bind_failed_before:
        yield say("report.bind_failed", failed=report.bind_failed, before=_format_number(report.bind_failed_before))
    if change := report.best_change:
        sentence = getattr(change.sentence, report.language)
        yield f"\n{say('report.best_change')}{say('state.colon')}{_escape_cell(sentence)}"
    decisive = {obstacle.code for obstacle in report.obstacles}
    for section, reasons in (("obstacles", report.obstacles), ("reasons", report.reasons)):
        if not reasons:
            continue
        yield f"\n## {say(f'report.{section}')}\n"
        yield from _write_table(
            [say(f"report.{name}") for name in ("reason", "attempts", "before", "devices", "who", "remedy")],
            [
                [
                    reason.code,
                    reason.attempts,
                    _format_number(reason.attempts_before),
                    reason.devices,
                    say("state.and").join(say(f"actor.{actor}") for actor in reason.who_acts) or "–",
                    say("report.above") if section == "reasons" and reason.code in decisive else reason.remedy,
                ]
                for reason in reasons
            ],
        )
    for section in ("waiting", "placed"):
        waited = getattr(report, section)
        yield f"\n## {say(f'report.{section}')}\n"
        yield _describe_waits(report, say, section) + "\n"
        if waited.causes:
            rows = [
                [cause.cause or say("report.unknown"), cause.pods, format_hours(cause.gpu_hours)]
                for cause in waited.causes
            ]
            yield from _write_table([say("report.cause"), say("report.pods"), say("report.gpu_hours")], rows)
    if report.layers:
        yield f"\n## {say('layers.title')}\n"
        yield from _write_table(
            [say("column.layer"), *(say(f"layers.{name}") for name in LAYER_NUMBERS)],
            [
                [
                    say(f"layer.{layer.layer}"),
                    *(_format_layer(report.language, name, getattr(layer, name)) for name in LAYER_NUMBERS),
                ]
                for layer in report.layers
            ],
        )
    if report.usage:
        yield f"\n## {say('usage.title')}\n"
        yield from _write_table(
            [say("column.namespace"), *(say(f"usage.{name}") for name in USAGE)],
            [[usage.namespace, *(format_usage(getattr(usage, name)) for name in USAGE)] for usage in report.usage],
        )
    yield f"\n## {say('report.times')}\n"
    named = (("time_to_placement", report.time_to_placement), ("time_to_start", report.time_to_start))
    yield from _write_table(
        ["", say("report.pods"), "p50", "p90", "p99"],
        [[say(f"report.{name}"), *_list_times(statistics)] for name, statistics in named],
    )
    for section in ("namespaces", "pools"):
        listed = getattr(report, section)
        if listed:
            yield f"\n## {say(f'report.{section}')}\n"
            rows = [[item.key, item.failed, _format_number(item.failed_before)] for item in listed]
            yield from _write_table(["", say("report.failed"), say("report.before")], rows)
    if statistics := report.fragmentation:
        yield f"\n## {say('report.fragmentation')}\n"
        yield say(
            "report.free",
            free=format_mib(statistics.free_memory_mib),
            idle=statistics.free_devices,
            devices=statistics.devices,
            shared=format_mib(statistics.free_memory_on_shared_mib),
        )
        if statistics.too_small_mib is not None:
            yield say(
                "report.too_small",
                small=format_mib(statistics.too_small_mib),
                asked=format_mib(statistics.smallest_asked_mib),
            )
    if report.findings:
        yield f"\n## {say('report.findings')}\n"
        yield from _write_table(
            [say("report.finding"), say("report.count")], [[f.finding, f.count] for f in report.findings]
        )


def _describe_waits(report: FailureReport, say: Any, section: str) -> str:
    """Describe the waits of a section: waiting or placed."""
    waited, measured = getattr(report, section), report.time_to_placement.pods
    values = {"pods": waited.pods, "hours": format_hours(waited.gpu_hours)}
    if section == "placed" and not is_wait_complete(waited.pods, measured):
        return str(say("report.waited_partly", measured=measured, **values))
    return str(say("report.waited", **values))


def _list_times(percentiles: Percentiles) -> list[str]:
    return [
        str(percentiles.pods),
        *(
            _format_seconds(value)
            for value in (percentiles.p50_seconds, percentiles.p90_seconds, percentiles.p99_seconds)
        ),
    ]


def _format_number(value: int | None) -> str:
    return "–" if value is None else str(value)


def _write_table(head: list[str], rows: list[list[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(_escape_cell(value) for value in row) + " |"


def _escape_cell(value: object) -> str:
    # The characters of a name must not begin another cell, line or tag.
    plain = str(escape_hidden(str(value))).replace("\n", " ")
    parts = _CODE.split(plain)
    inert = (f"`{part}`" if index % 2 else part.translate(_MARKUP) for index, part in enumerate(parts))
    return "".join(inert).replace("|", "\\|")
