"""``schedulerlog explain LOG [POD]``: the pods of a scheduler's log, without any server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from cli.terminal.answers import Format, is_printed
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, UNKNOWN, USAGE, code_of_state
from cli.terminal.screen import Screen, complain, counted
from cli.terminal.times import clock
from page.views.log_pods import listed_pods
from schemas.json_types import Json


def explain(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Plain or packed (gzip, zstd, xz, bzip2, tar); - is standard input.")
    ],
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME; without it a table.")] = "",
    output: Annotated[
        Format, typer.Option("--output", "-o", metavar="wide|json|yaml|name", help="More columns, or for programs.")
    ] = "text",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the answer as a page that stands for itself.")
    ] = None,
    language: Annotated[Literal["en", "zh"], typer.Option("--lang", help="Of the page.")] = "en",
) -> None:
    """Why the pods of a scheduler's log wait, or are where they are: HAMi's or KAI's log, and nothing else.

    \b
    Examples:
      schedulerlog explain hami.log
      schedulerlog explain hami.log llm/deepseek-0
      schedulerlog explain hami.log --html why.html
      kubectl logs -n kube-system deploy/hami-scheduler -c vgpu-scheduler-extender | schedulerlog explain -

    Ends as `why` where a pod is named.
    """
    found = _read(log, pod)
    if html:
        _write_page(html, log, found, language)
    if pod:
        diagnosis = found[0]["diagnosis"]
        if not is_printed(output, diagnosis, lambda answer: [answer]):
            show_diagnosis(Screen(), diagnosis, None, is_wide=output == "wide")
        raise typer.Exit(code_of_state(diagnosis["state"]))
    if not is_printed(output, {"items": found}, lambda answer: [item["diagnosis"] for item in answer["items"]]):
        _show_table(Screen(), log, found, is_wide=output == "wide")
    raise typer.Exit(PLACED)


def _read(log: Path, pod: str) -> list[Json]:
    """A row for each pod, or for the named one alone; ends the command where the log has none."""
    from ingest.errors import MistakeError
    from ingest.log_answers.answers import absence, answers
    from ingest.log_answers.log_pods import LogPods
    from ingest.log_answers.read_log import read_log
    from ingest.sources.pieces import UnreadableFileError

    pods = LogPods()
    try:
        read_log(log, pods)
    except MistakeError as error:
        _stop(str(error), USAGE)
    except UnreadableFileError as error:
        # A log that is torn (a truncated gzip) still answers for what was before the tear.
        if not pods.pods:
            _stop(str(error), USAGE)
        complain(f"{error}; the answer is from the part before that")
    wanted = pods.named(pod) if pod else list(pods.pods.values())
    if not wanted:
        _stop(absence(_named(log), pod, pods), UNKNOWN)
    if pod and len(wanted) > 1:
        _stop(f"{pod} is in several namespaces: name one of {', '.join(match.name for match in wanted)}", USAGE)
    return [_row(answer) for answer in answers(wanted, pods.last_started_at)]


def _named(log: Path) -> str:
    return "standard input" if str(log) == "-" else str(log)


def _write_page(file: Path, log: Path, found: list[Json], language: Literal["en", "zh"]) -> None:
    from page.log_file import log_file

    try:
        file.write_text(log_file(_named(Path(log.name)), found, language), "utf-8")
    except OSError as error:
        _stop(f"--html: {file} can't be written: {error.strerror}", USAGE)


def _stop(text: str, code: int) -> NoReturn:
    """End the command; the text may name pods of the log."""
    complain(text)
    raise typer.Exit(code)


def _row(answer: Any) -> Json:
    from schemas.codec.records import rfc3339

    started_at, diagnosis = rfc3339(answer.started_at), answer.diagnosis.model_dump(mode="json")
    return {"attempts": answer.attempts, "node": answer.node, "started_at": started_at, "diagnosis": diagnosis}


def _show_table(screen: Screen, log: Path, rows: list[Json], *, is_wide: bool) -> None:
    ordered, placed = listed_pods(rows)
    waiting = len(rows) - placed
    screen.line(f"{counted(len(rows), 'pod')} in {_named(log)}: {placed:,} placed, {waiting:,} not.", "bold")
    if not rows:
        return
    screen.blank()
    columns = ["POD", "STATUS", "NODE", "#ATTEMPTS", "MAIN OBSTACLE"]
    cells = [_cells(row)[: 6 if is_wide else 5] for row in ordered]
    screen.table([*columns, "LAST (UTC)"] if is_wide else columns, cells, is_wide=is_wide)
    if waiting:
        screen.blank()
        first = ordered[0]["diagnosis"]
        screen.line(f"Why one of them: schedulerlog explain {log} {first['namespace']}/{first['name']}", "dim")


def _cells(row: Mapping[str, Any]) -> list[str]:
    diagnosis = row["diagnosis"]
    obstacle = diagnosis["obstacle"]
    return [
        f"{diagnosis['namespace']}/{diagnosis['name']}",
        diagnosis["state"],
        row["node"],
        str(row["attempts"]),
        obstacle["code"] if obstacle else "",
        clock(row["started_at"]),
    ]
