"""``schedulerlog report``: the failures of a range of time, what they cost, and what to do about them."""

from typing import Annotated, Any, Final, Literal

import typer

from cli.client.problems import Problem
from cli.terminal.answers import SentenceLanguage, end_with, print_document, require_answer
from cli.terminal.diagnosed import WHO
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, emit, format_count
from cli.terminal.values import format_duration, format_time
from page.views.amounts import format_gpu_hours, is_wait_complete
from schemas.json_types import Json

PATH: Final = "/reports/failures"
SHOWN_REMEDIES: Final = 3
Document = Literal["", "markdown", "html", "csv"]


@with_api_options
def report(
    asking: Asking,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Failures of all namespaces.")] = False,
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "7d",
    until: Annotated[str, typer.Option(metavar="TIME", help="Default: now.")] = "",
    document: Annotated[
        Document, typer.Option("--format", metavar="markdown|html|csv", help="The whole report, to keep or to send.")
    ] = "",
    *,
    lang: SentenceLanguage,
) -> None:
    """Report the failures of a week: reasons with their remedies, GPU-hours by cause, times to placement.

    \b
    Examples:
      schedulerlog report -A
      schedulerlog report -n llm --since 24h
      schedulerlog report -A --format html > report.html
    """
    transport = asking.create_transport()
    namespace = "" if all_namespaces else transport.get_namespace()
    query = {"namespace": namespace, "since": since, "until": until, "lang": lang}
    if document:
        text = transport.get_text(PATH, query | {"format": document})
        if isinstance(text, Problem):
            end_with(text, lang)
        # CSV ends its lines as RFC 4180 says; the mark would be written out, as what a terminal obeys is.
        emit(text.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n"))
        return
    answer = require_answer(transport.get(PATH, query), lang)
    if not print_document(asking.output, answer):
        _show(Screen(), answer, is_wide=asking.output == "wide")


def _show(screen: Screen, answer: Json, *, is_wide: bool) -> None:
    where = f" in namespace {answer['namespace']}" if answer["namespace"] else ""
    then = _describe_before(answer["failed_before"])
    screen.print_line(
        f"{answer['failed']:,} of {format_count(answer['attempts'], 'attempt')} failed{where}{then}.", "bold"
    )
    if answer["bind_failed"] or answer["bind_failed_before"]:
        then = _describe_before(answer["bind_failed_before"])
        screen.print_line(f"Of them, {answer['bind_failed']:,} had a node and failed to be bound to it{then}.")
    screen.print_line(f"{format_time(answer['since'])} to {format_time(answer['until'])} UTC", "dim")
    if change := answer["best_change"]:
        screen.skip_line()
        screen.print_line("The one change that helps most:", "bold")
        screen.print_line(f"{change['sentence'][answer['language']]} ({WHO[change['who_acts']]})", indent=2)
    # Of an API or records of an earlier version only the reasons are known.
    obstacles = answer.get("obstacles") or []
    _show_reasons(screen, "OBSTACLE" if obstacles else "REASON", obstacles or answer["reasons"], is_wide=is_wide)
    if obstacles and is_wide:
        _show_reasons(screen, "ALSO SEEN", answer["reasons"], is_wide=False, remedies=0)
    _show_waits(screen, answer["waiting"], "Waiting now: {pods}, {hours} GPU-hours")
    times = answer["time_to_placement"]
    is_known = is_wait_complete(answer["placed"]["pods"], times["pods"])
    full_text = ", after {hours} GPU-hours of waiting"
    partial_text = f". How long they waited is known of {times['pods']:,}: {{hours}} GPU-hours"
    _show_waits(screen, answer["placed"], "Placed in this time: {pods}" + (full_text if is_known else partial_text))
    _show_layers(screen, answer.get("layers", []))
    _show_usage(screen, answer.get("usage", []))
    if times["pods"]:
        screen.skip_line()
        percentiles = ", ".join(
            f"{name} {format_duration(seconds)}"
            for name in ("p50", "p90", "p99")
            if (seconds := times[f"{name}_seconds"]) is not None
        )
        screen.print_line(f"Time to placement of {format_count(times['pods'], 'pod')}: {percentiles}")
    if answer["findings"]:
        screen.print_line(
            "Findings: " + ", ".join(f"{finding['count']:,} {finding['finding']}" for finding in answer["findings"])
        )


def _describe_before(before: int | None) -> str:
    return "" if before is None else f", {before:,} in the range before"


def _show_reasons(
    screen: Screen, title: str, reasons: list[dict[str, Any]], *, is_wide: bool, remedies: int = SHOWN_REMEDIES
) -> None:
    if not reasons:
        return
    screen.skip_line()
    rows = [
        [reason["code"], f"{reason['attempts']:,}", _format_number(reason["attempts_before"]), f"{reason['devices']:,}"]
        for reason in reasons
    ]
    screen.print_table([title, "#ATTEMPTS", "#BEFORE", "#DEVICES"], rows)
    for reason in reasons if is_wide else reasons[:remedies]:
        who = " or ".join(WHO[actor] for actor in reason["who_acts"])
        screen.skip_line()
        screen.print_line(f"{reason['code']}" + (f", by {who}" if who else ""), "bold")
        screen.print_line(reason["remedy"], indent=2)


def _format_number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _show_layers(screen: Screen, layers: list[dict[str, Any]]) -> None:
    if not layers:
        return
    screen.skip_line()
    screen.print_line("Waits by layer", "bold")
    rows = [
        [
            layer["layer"],
            f"{layer['placed_pods']:,}",
            format_duration(layer["placed_seconds"]),
            f"{layer['waiting_pods']:,}",
            format_duration(layer["waiting_seconds"]),
        ]
        for layer in layers
    ]
    screen.print_table(["LAYER", "#PLACED PODS", "#WAITED", "#WAITING PODS", "#WAIT NOW"], rows, indent=2)


def _show_usage(screen: Screen, usage: list[dict[str, Any]]) -> None:
    if not usage:
        return
    screen.skip_line()
    screen.print_line("By namespace, in GPU-hours; a part of a device counts as one", "bold")
    rows = [
        [
            item["namespace"],
            f"{item['devices']:,}",
            format_gpu_hours(item["held_gpu_hours"]),
            f"{item['waiting_pods']:,}",
            format_gpu_hours(item["waiting_gpu_hours"]),
            format_gpu_hours(item["placed_gpu_hours"]),
        ]
        for item in usage
    ]
    columns = ["NAMESPACE", "#DEVICES", "#HELD", "#WAITING PODS", "#WAIT NOW", "#WAITED BEFORE"]
    screen.print_table(columns, rows, indent=2)


def _show_waits(screen: Screen, waited: dict[str, Any], what: str) -> None:
    if not waited["pods"]:
        return
    screen.skip_line()
    pods, hours = format_count(waited["pods"], "pod"), format_gpu_hours(waited["gpu_hours"])
    screen.print_line(what.format(pods=pods, hours=hours), "bold")
    rows = [
        [cause["cause"] or "not known", f"{cause['pods']:,}", format_gpu_hours(cause["gpu_hours"])]
        for cause in waited["causes"]
    ]
    if rows:
        screen.print_table(["CAUSE", "#PODS", "#GPU HOURS"], rows, indent=2)
