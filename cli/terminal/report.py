"""``schedulerlog report``: the failures of a range of time, what they cost, and what to do about them."""

from typing import Annotated, Any, Final, Literal

import typer

from cli.client.problems import Problem
from cli.terminal.answers import answered, end_with, is_printed
from cli.terminal.diagnosed import WHO
from cli.terminal.options import Asking, asks
from cli.terminal.screen import Screen, counted, emit
from cli.terminal.times import clock, duration
from page.views.amounts import gpu_hours
from page.views.waits import is_wait_known
from schemas.json_types import Json

PATH: Final = "/reports/failures"
SHOWN_REMEDIES: Final = 3
Document = Literal["", "markdown", "html", "csv"]


@asks
def report(
    asking: Asking,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "7d",
    until: Annotated[str, typer.Option(metavar="TIME", help="Default: now.")] = "",
    document: Annotated[
        Document, typer.Option("--format", metavar="markdown|html|csv", help="The whole report, to keep or to send.")
    ] = "",
    lang: Annotated[Literal["en", "zh"], typer.Option(metavar="en|zh", help="Of meanings and remedies.")] = "en",
) -> None:
    """The failures of a week: reasons with their remedies, GPU-hours by cause, times to placement.

    \b
    Examples:
      schedulerlog report -A
      schedulerlog report -n llm --since 24h
      schedulerlog report -A --format html > report.html
    """
    transport = asking.transport()
    namespace = "" if all_namespaces else transport.namespace()
    query = {"namespace": namespace, "since": since, "until": until, "lang": lang}
    if document:
        text = transport.text(PATH, query | {"format": document})
        if isinstance(text, Problem):
            end_with(text, lang)
        # CSV ends its lines as RFC 4180 says; the mark would be written out, as what a terminal obeys is.
        emit(text.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n"))
        return
    answer = answered(transport.get(PATH, query), lang)
    if not is_printed(asking.output, answer):
        _show(Screen(), answer, is_wide=asking.output == "wide")


def _show(screen: Screen, found: Json, *, is_wide: bool) -> None:
    where = f" in namespace {found['namespace']}" if found["namespace"] else ""
    then = _then(found["failed_before"])
    screen.line(f"{found['failed']:,} of {counted(found['attempts'], 'attempt')} failed{where}{then}.", "bold")
    if found["bind_failed"] or found["bind_failed_before"]:
        then = _then(found["bind_failed_before"])
        screen.line(f"Of them, {found['bind_failed']:,} had a node and failed to be bound to it{then}.")
    screen.line(f"{clock(found['since'])} to {clock(found['until'])} UTC", "dim")
    if change := found["best_change"]:
        screen.blank()
        screen.line("The one change that helps most:", "bold")
        screen.line(f"{change['sentence'][found['language']]} ({WHO[change['who_acts']]})", indent=2)
    _show_reasons(screen, found["reasons"], is_wide=is_wide)
    _show_waits(screen, found["waiting"], "Waiting now: {pods}, {hours} GPU-hours")
    times = found["time_to_placement"]
    is_known = is_wait_known(found["placed"]["pods"], times["pods"])
    known = ", after {hours} GPU-hours of waiting"
    partly = f". How long they waited is known of {times['pods']:,}: {{hours}} GPU-hours"
    _show_waits(screen, found["placed"], "Placed in this time: {pods}" + (known if is_known else partly))
    if times["pods"]:
        screen.blank()
        shown = ", ".join(
            f"{name} {duration(seconds)}"
            for name in ("p50", "p90", "p99")
            if (seconds := times[f"{name}_seconds"]) is not None
        )
        screen.line(f"Time to placement of {counted(times['pods'], 'pod')}: {shown}")
    if found["findings"]:
        screen.line(
            "Findings: " + ", ".join(f"{finding['count']:,} {finding['finding']}" for finding in found["findings"])
        )


def _then(before: int | None) -> str:
    return "" if before is None else f", {before:,} in the range before"


def _show_reasons(screen: Screen, reasons: list[dict[str, Any]], *, is_wide: bool) -> None:
    if not reasons:
        return
    screen.blank()
    rows = [
        [reason["code"], f"{reason['attempts']:,}", _number(reason["attempts_before"]), f"{reason['devices']:,}"]
        for reason in reasons
    ]
    screen.table(["REASON", "#ATTEMPTS", "#BEFORE", "#DEVICES"], rows)
    for reason in reasons if is_wide else reasons[:SHOWN_REMEDIES]:
        who = " or ".join(WHO[actor] for actor in reason["who_acts"])
        screen.blank()
        screen.line(f"{reason['code']}" + (f", by {who}" if who else ""), "bold")
        screen.line(reason["remedy"], indent=2)


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _show_waits(screen: Screen, waited: dict[str, Any], what: str) -> None:
    if not waited["pods"]:
        return
    screen.blank()
    pods, hours = counted(waited["pods"], "pod"), gpu_hours(waited["gpu_hours"])
    screen.line(what.format(pods=pods, hours=hours), "bold")
    rows = [
        [cause["cause"] or "not known", f"{cause['pods']:,}", gpu_hours(cause["gpu_hours"])]
        for cause in waited["causes"]
    ]
    if rows:
        screen.table(["CAUSE", "#PODS", "#GPU HOURS"], rows, indent=2)
