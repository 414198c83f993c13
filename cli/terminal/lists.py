"""``schedulerlog list``: the pods that wait, or attempts that are searched for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.terminal import pending as waiting
from cli.terminal.answers import answered, is_printed
from cli.terminal.exit_codes import USAGE
from cli.terminal.options import Asking, asks
from cli.terminal.pending import By
from cli.terminal.screen import Screen, counted
from cli.terminal.times import age, read_time
from cli.terminal.words import asked_status, status_word
from runtime.cli.cli import fail
from schemas.json_types import Json


@asks
def list_pods(
    asking: Asking,
    pending: Annotated[bool, typer.Option("--pending", help="What waits now, the longest wait first.")] = False,
    by: Annotated[
        By, typer.Option(metavar="pod|workload|obstacle", help="With --pending: what a row is about.")
    ] = "pod",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    reason: Annotated[str, typer.Option(metavar="CODE", help="Refused for this reason (docs/reasons.md).")] = "",
    status: Annotated[str, typer.Option(metavar="placed|refused|undecided", help="Of the attempt.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "",
    search: Annotated[str, typer.Option("--search", "-q", help="Words of messages and reasons.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many rows.")] = 50,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="With --pending: then a line for each change.")] = False,
) -> None:
    """The latest attempts of all pods; with --pending the pods that wait.

    \b
    Examples:
      schedulerlog list --pending -A
      schedulerlog list --pending -A --by obstacle
      schedulerlog list -n llm --reason CardInsufficientMemory --since 2h
      schedulerlog list --pending -n llm -o name
    """
    if pending and (status or search):
        fail("--pending: what waits has no --status and no --search", USAGE)
    if watch and not pending:
        fail("--watch: give --pending too", USAGE)
    transport = asking.transport()
    namespace = "" if all_namespaces else transport.namespace()
    query = {"namespace": namespace, "reason": reason, "since": since, "limit": str(limit)}
    if not pending:
        answer = answered(transport.get("/schedulerlogs", query | {"status": asked_status(status), "q": search}))
        _show_attempts(asking, answer, namespace)
        return
    _show_pending(asking, answered(transport.get("/pending", query | {"group_by": by})), by, namespace)
    if watch:
        from cli.terminal.watching import later_changes, show_change

        for change in later_changes(transport, "/pending", {"namespace": namespace, "reason": reason}):
            show_change(asking, change)


def _show_pending(asking: Asking, answer: Json, by: By, namespace: str) -> None:
    if is_printed(asking.output, answer, waiting.pods):
        return
    now = datetime.now(UTC)
    columns = waiting.columns(by, is_wide=asking.output == "wide")
    rows = waiting.rows(answer, by, lambda since: (now - read_time(since)).total_seconds())
    screen = _show(asking, _in(namespace, waiting.headline(answer, by)), columns, rows, answer["total"])
    for owner in answer.get("blocked", ()):
        screen.blank()
        problem = owner["problem"]
        screen.line(f"{owner['namespace']}/{owner['workload']} can't make its pods: {problem['message']}", "yellow")


def _show_attempts(asking: Asking, answer: Json, namespace: str) -> None:
    if is_printed(asking.output, answer, lambda found: found["items"]):
        return
    columns = ["POD", "AGO", "STATUS", "NODE", "REASONS"]
    if asking.output == "wide":
        columns += ["WORKLOAD", "SCHEDULER", "ATTEMPT"]
    headline = counted(answer["total"], "attempt") if answer["total"] else "No attempt was found"
    _show(asking, _in(namespace, headline), columns, _attempts(answer), answer["total"])


def _show(asking: Asking, headline: str, columns: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Screen:
    screen = Screen()
    screen.line(headline, "bold")
    if rows:
        screen.blank()
        screen.table(columns, (row[: len(columns)] for row in rows), is_wide=asking.output == "wide")
    if total > len(rows):
        screen.blank()
        screen.line(f"The first {len(rows)}; --limit shows more.", "dim")
    return screen


def _in(namespace: str, headline: str) -> str:
    return f"{headline} in namespace {namespace}." if namespace else f"{headline}."


def _attempts(answer: Json) -> list[list[str]]:
    now = datetime.now(UTC)
    return [
        [
            f"{item['namespace']}/{item['name']}",
            age(item["started_at"], now),
            status_word(item["status"]),
            item["chosen"] or "",
            waiting.few(item["reasons"]),
            item["workload"],
            item["scheduler"],
            item["attempt_id"],
        ]
        for item in answer["items"]
    ]
