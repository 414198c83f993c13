"""``schedulerlog explain LOG [POD]``: the pods in a scheduler's log, without any server."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from cli.terminal.answers import Format, print_document
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, UNKNOWN, USAGE, to_state_exit_code
from cli.terminal.screen import Screen, complain, format_count
from cli.terminal.times import format_time
from page.views.log_pods import list_pods
from schemas.json_types import Json

if TYPE_CHECKING:
    from ingest.cases.log_pods import LogPods, PodInLog


def explain(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Plain or packed (gzip, zstd, xz, bzip2, tar); - is standard input.")
    ],
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME; default: a table of all.")] = "",
    output: Annotated[
        Format, typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="More columns, or for programs.")
    ] = "text",
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="With -o json: the API's full answer, every node and device, in place of the diagnosis."
        ),
    ] = False,
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output of `kubectl get nodes -o json`: nodes, memory and pools of devices."),
    ] = None,
    timezone: Annotated[
        str, typer.Option(metavar="ZONE", help="Time zone of the log, such as Asia/Shanghai; klog lines have none.")
    ] = "UTC",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the answer as a page that needs no other file.")
    ] = None,
    language: Annotated[Literal["en", "zh"], typer.Option("--lang", help="Language of the page.")] = "en",
) -> None:
    """Explain why the pods in a scheduler's log wait, or why they are where they are; needs no server.

    \b
    Examples:
      schedulerlog explain hami.log
      schedulerlog explain hami.log llm/deepseek-0
      schedulerlog explain hami.log llm/deepseek-0 -o json --full
      schedulerlog explain hami.log --html why.html
      kubectl logs -n kube-system deploy/hami-scheduler -c vgpu-scheduler-extender | schedulerlog explain -

    Reads the logs of HAMi's scheduler and of KAI-Scheduler. With a pod it ends with the exit codes of `why`.
    """
    if full and (not pod or output not in ("json", "yaml")):
        _stop("--full: name a pod and write -o json or -o yaml", USAGE)
    pods, matches = _read(log, pod, nodes, timezone)
    rows = _diagnose(matches, pods)
    if html:
        _write_page(html, log, rows, language)
    if not pod:
        if not print_document(output, {"items": rows}, lambda answer: [row["diagnosis"] for row in answer["items"]]):
            _show_table(Screen(), log, rows, is_wide=output == "wide")
        raise typer.Exit(PLACED)
    diagnosis = rows[0]["diagnosis"]
    if not print_document(output, _write_full(matches[0]) if full else diagnosis, lambda answer: [answer]):
        show_diagnosis(Screen(), diagnosis, None, is_wide=output == "wide")
    raise typer.Exit(to_state_exit_code(diagnosis["state"]))


def _read(log: Path, pod: str, nodes: Path | None, timezone: str) -> "tuple[LogPods, list[PodInLog]]":
    """Read the pods of the log, and select the named one, or all; ends the command if there is none."""
    from ingest.errors import MistakeError
    from ingest.cases.answers import explain_absence
    from ingest.cases.log_pods import LogPods
    from ingest.cases.read_log import read_log
    from ingest.readers.registry import LogFacts
    from ingest.reading.protocol import Counts
    from ingest.reading.report import report
    from ingest.sources.log_facts import parse_zone, read_node_list
    from ingest.sources.pieces import UnreadableFileError

    pods, counts = LogPods(), Counts()
    try:
        facts = LogFacts(read_node_list(nodes, bytes) if nodes else b"", parse_zone(timezone))
        counts = read_log(log, pods.add, facts)
    except MistakeError as error:
        _stop(str(error), USAGE)
    except UnreadableFileError as error:
        # A log that is torn (a truncated gzip) still answers for what was before the tear.
        if not pods.pods:
            _stop(str(error), USAGE)
        complain(f"{error}; the answer is from the part before that")
    matches = pods.select(pod)
    if pod and not matches:
        if not pods.pods:
            complain(report(counts))
        _stop(explain_absence(_name_log(log), pod, pods), UNKNOWN)
    if pod and len(matches) > 1:
        _stop(f"{pod} is in several namespaces: name one of {', '.join(match.name for match in matches)}", USAGE)
    return pods, matches


def _diagnose(matches: "Iterable[PodInLog]", pods: "LogPods") -> list[Json]:
    """Diagnose the pods: a row for each."""
    from ingest.cases.answers import diagnose_pods
    from schemas.codec.records import format_rfc3339

    return [
        {
            "attempts": answer.attempts,
            "node": answer.node,
            "started_at": format_rfc3339(answer.started_at),
            "diagnosis": answer.diagnosis.model_dump(mode="json"),
        }
        for answer in diagnose_pods(matches, pods.last_started_at)
    ]


def _write_full(match: "PodInLog") -> Json:
    from ingest.cases.answers import write_schedulerlog

    return write_schedulerlog(match)


def _name_log(log: Path) -> str:
    return "standard input" if str(log) == "-" else str(log)


def _write_page(file: Path, log: Path, rows: list[Json], language: Literal["en", "zh"]) -> None:
    from page.log_file import render_log_file

    try:
        file.write_text(render_log_file(_name_log(Path(log.name)), rows, language), "utf-8")
    except OSError as error:
        _stop(f"--html: {file} can't be written: {error.strerror}", USAGE)


def _stop(text: str, code: int) -> NoReturn:
    """End the command; the text may name pods of the log."""
    complain(text)
    raise typer.Exit(code)


def _show_table(screen: Screen, log: Path, rows: list[Json], *, is_wide: bool) -> None:
    ordered, placed = list_pods(rows)
    waiting = len(rows) - placed
    screen.print_line(
        f"{format_count(len(rows), 'pod')} in {_name_log(log)}: {placed:,} placed, {waiting:,} not.", "bold"
    )
    if not rows:
        return
    screen.skip_line()
    columns = ["POD", "STATUS", "NODE", "#ATTEMPTS", "MAIN OBSTACLE"]
    cells = [_to_cells(row)[: 6 if is_wide else 5] for row in ordered]
    screen.print_table([*columns, "LAST (UTC)"] if is_wide else columns, cells, is_wide=is_wide)
    if waiting:
        screen.skip_line()
        first = ordered[0]["diagnosis"]
        screen.print_line(f"Why one of them: schedulerlog explain {log} {first['namespace']}/{first['name']}", "dim")


def _to_cells(row: Mapping[str, Any]) -> list[str]:
    diagnosis = row["diagnosis"]
    obstacle = diagnosis["obstacle"]
    return [
        f"{diagnosis['namespace']}/{diagnosis['name']}",
        diagnosis["state"],
        row["node"],
        str(row["attempts"]),
        obstacle["code"] if obstacle else "",
        format_time(row["started_at"]),
    ]
