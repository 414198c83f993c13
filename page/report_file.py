"""The report of failures as a file: a page of its own, Markdown or CSV."""

import csv
import io
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, Literal

from page.formats import hours, mib, to_second, visible
from page.plots import Series, bars_over_time, bars_side_by_side, highest_bar
from page.render import environment
from page.texts import text
from page.views.waits import is_wait_known
from schemas.answers.reports import FailureReport, Percentiles

Row = tuple[str, str, str, Any]
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Spreadsheets read a cell that begins so as a formula (OWASP, "CSV Injection"), also behind spaces."""

_CODE: Final = re.compile(r"(?<![`\\])`([^`\\]+)`(?!`)")
"""What every reader of Markdown shows as code, where nothing is a tag and an escape would be shown."""
_MARKUP: Final = str.maketrans({"<": "&lt;", "\\": "\\\\", "`": "\\`", "[": "\\["})


def written(report: FailureReport, form: Literal["csv", "markdown", "html"]) -> str:
    """The file's text."""
    return {"csv": _csv, "markdown": _markdown, "html": _html}[form](report)


def numbers(report: FailureReport) -> Iterator[Row]:
    """Every number of the report, as section, key, measure and value."""
    for name in ("attempts", "failed", "failed_before", "bind_failed", "bind_failed_before"):
        yield "attempts", "", name, getattr(report, name)
    for reason in report.reasons:
        for name in ("attempts", "attempts_before", "devices"):
            yield "reason", reason.code, name, getattr(reason, name)
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
    for section in ("time_to_placement", "time_to_start"):
        for name, value in getattr(report, section):
            yield section, "", name, value
    for name, value in report.fragmentation or ():
        yield "fragmentation", "", name, value
    for found in report.findings:
        yield "findings", found.finding, "count", found.count
    if change := report.best_change:
        yield "best_change", f"{change.constraint} {change.where}".strip(), "pods", change.pods


def _csv(report: FailureReport) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["section", "key", "measure", "value"])
    # A name that a spreadsheet would read as a formula becomes a text.
    rows = (
        (section, f"'{key}" if key.lstrip(" ").startswith(_FORMULA) else key, name, "" if value is None else value)
        for section, key, name, value in numbers(report)
    )
    writer.writerows(rows)
    return file.getvalue()


def view_of(report: FailureReport) -> dict[str, Any]:
    """What ``report_body.html`` shows."""
    say = partial(text, report.language)
    over_time = [Series(item.key, item.values) for item in report.over_time.items]
    if report.over_time.other:
        over_time.append(Series(say("report.other"), report.over_time.other.values))
    causes = {
        name: [(cause.cause or say("report.unknown"), cause.gpu_hours) for cause in getattr(report, name).causes]
        for name in ("waiting", "placed")
    }
    plots = {
        "over_time": bars_over_time(say("report.over_time"), report.over_time.times, over_time),
        **{name: bars_side_by_side(say(f"report.{name}"), bars, "h") if bars else "" for name, bars in causes.items()},
    }
    legend = [series.key for series in over_time]
    return {
        "report": report,
        "plots": plots,
        "legend": legend,
        "highest": highest_bar(over_time),
        "seconds": _seconds,
        "waited_of": partial(_waited, report, say),
    }


def _html(report: FailureReport) -> str:
    values = view_of(report) | {"t": partial(text, report.language)}
    return environment().get_template("report_file.html").render(values)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def _markdown(report: FailureReport) -> str:
    say = partial(text, report.language)
    return "\n".join(_lines(report, say)) + "\n"


def _lines(report: FailureReport, say: Any) -> Iterator[str]:
    yield f"# {say('report.title')}"
    where = f", {report.namespace}" if report.namespace else ""
    yield f"\n{_cell(report.cluster)}{where}: {to_second(report.since)} – {to_second(report.until)} UTC\n"
    yield say("report.summary", attempts=report.attempts, failed=report.failed, before=_number(report.failed_before))
    if report.bind_failed or report.bind_failed_before:
        yield say("report.bind_failed", failed=report.bind_failed, before=_number(report.bind_failed_before))
    if change := report.best_change:
        yield f"\n{say('report.best_change')}{say('state.colon')}{_cell(getattr(change.sentence, report.language))}"
    if report.reasons:
        yield f"\n## {say('report.reasons')}\n"
        yield from _table(
            [say(f"report.{name}") for name in ("reason", "attempts", "before", "devices", "who", "remedy")],
            [
                [
                    reason.code,
                    reason.attempts,
                    _number(reason.attempts_before),
                    reason.devices,
                    say("state.and").join(say(f"actor.{actor}") for actor in reason.who_acts) or "–",
                    reason.remedy,
                ]
                for reason in report.reasons
            ],
        )
    for section in ("waiting", "placed"):
        waited = getattr(report, section)
        yield f"\n## {say(f'report.{section}')}\n"
        yield _waited(report, say, section) + "\n"
        if waited.causes:
            rows = [
                [cause.cause or say("report.unknown"), cause.pods, hours(cause.gpu_hours)] for cause in waited.causes
            ]
            yield from _table([say("report.cause"), say("report.pods"), say("report.gpu_hours")], rows)
    yield f"\n## {say('report.times')}\n"
    named = (("time_to_placement", report.time_to_placement), ("time_to_start", report.time_to_start))
    yield from _table(
        ["", say("report.pods"), "p50", "p90", "p99"],
        [[say(f"report.{name}"), *_times(found)] for name, found in named],
    )
    for section in ("namespaces", "pools"):
        listed = getattr(report, section)
        if listed:
            yield f"\n## {say(f'report.{section}')}\n"
            rows = [[item.key, item.failed, _number(item.failed_before)] for item in listed]
            yield from _table(["", say("report.failed"), say("report.before")], rows)
    if found := report.fragmentation:
        yield f"\n## {say('report.fragmentation')}\n"
        yield say(
            "report.free",
            free=mib(found.free_memory_mib),
            idle=found.free_devices,
            devices=found.devices,
            shared=mib(found.free_memory_on_shared_mib),
        )
        if found.too_small_mib is not None:
            yield say("report.too_small", small=mib(found.too_small_mib), asked=mib(found.smallest_asked_mib))
    if report.findings:
        yield f"\n## {say('report.findings')}\n"
        yield from _table([say("report.finding"), say("report.count")], [[f.finding, f.count] for f in report.findings])


def _waited(report: FailureReport, say: Any, section: str) -> str:
    """``section``: waiting or placed."""
    waited, measured = getattr(report, section), report.time_to_placement.pods
    values = {"pods": waited.pods, "hours": hours(waited.gpu_hours)}
    if section == "placed" and not is_wait_known(waited.pods, measured):
        return str(say("report.waited_partly", measured=measured, **values))
    return str(say("report.waited", **values))


def _times(found: Percentiles) -> list[str]:
    return [str(found.pods), *(_seconds(value) for value in (found.p50_seconds, found.p90_seconds, found.p99_seconds))]


def _number(value: int | None) -> str:
    return "–" if value is None else str(value)


def _table(head: list[str], rows: list[list[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(_cell(value) for value in row) + " |"


def _cell(value: object) -> str:
    # What a name of the cluster holds begins no other cell, line or tag.
    shown = str(visible(str(value))).replace("\n", " ")
    parts = _CODE.split(shown)
    inert = (f"`{part}`" if place % 2 else part.translate(_MARKUP) for place, part in enumerate(parts))
    return "".join(inert).replace("|", "\\|")
