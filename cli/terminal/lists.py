"""``schedulerlog list``: the pods that wait, or attempts that are searched for."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.terminal import pending as waiting
from cli.terminal.answers import print_document, require_answer
from cli.terminal.exit_codes import USAGE
from cli.terminal.options import Asking, with_api_options
from cli.terminal.pending import Grouping
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_age, parse_time, to_status, to_status_word
from runtime.cli.cli import fail
from schemas.json_types import Json


@with_api_options
def list_pods(
    asking: Asking,
    pending: Annotated[bool, typer.Option("--pending", help="Pods that wait now, the longest wait first.")] = False,
    grouping: Annotated[
        Grouping,
        typer.Option("--by", metavar="pod|workload|obstacle|layer", help="With --pending: the subject of a row."),
    ] = "pod",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces.")] = False,
    obstacle: Annotated[str, typer.Option(metavar="CODE", help="Decided by this obstacle.")] = "",
    reason: Annotated[str, typer.Option(metavar="CODE", help="Refused for this reason (docs/reasons.md).")] = "",
    status: Annotated[str, typer.Option(metavar="placed|refused|undecided", help="Result of the attempt.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "",
    search: Annotated[str, typer.Option("--search", "-q", help="Words of messages and reasons.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="Number of rows.")] = 50,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="With --pending: then a line for each change.")] = False,
) -> None:
    """List the latest attempts of all pods; with --pending the pods that wait.

    \b
    Examples:
      schedulerlog list --pending -A
      schedulerlog list --pending -A --by obstacle
      schedulerlog list --pending -A --by layer
      schedulerlog list -n llm --reason CardInsufficientMemory --since 2h
      schedulerlog list --pending -n llm -o name
    """
    if pending and (status or search):
        fail("--pending: what waits has no --status and no --search", USAGE)
    if watch and not pending:
        fail("--watch: give --pending too", USAGE)
    transport = asking.create_transport()
    namespace = "" if all_namespaces else transport.get_namespace()
    filters = {"namespace": namespace, "obstacle": obstacle, "reason": reason}
    query = filters | {"since": since, "limit": str(limit)}
    if not pending:
        answer = require_answer(transport.get("/schedulerlogs", query | {"status": to_status(status), "q": search}))
        _show_attempts(asking, answer, namespace)
        return
    _show_pending(
        asking, require_answer(transport.get("/pending", query | {"group_by": grouping})), grouping, namespace
    )
    if watch:
        from cli.terminal.watching import follow_later, show_change

        for change in follow_later(transport, "/pending", filters):
            show_change(asking, change)


def _show_pending(asking: Asking, answer: Json, grouping: Grouping, namespace: str) -> None:
    if print_document(asking.output, answer, waiting.iterate_pods):
        return
    now = datetime.now(UTC)
    columns = waiting.list_columns(grouping, is_wide=asking.output == "wide")
    rows = waiting.to_rows(answer, grouping, lambda since: (now - parse_time(since)).total_seconds())
    screen = _show(
        asking, _add_namespace(namespace, waiting.write_headline(answer, grouping)), columns, rows, answer["total"]
    )
    for owner in answer.get("blocked", ()):
        screen.skip_line()
        message = owner["problem"]["message"]
        screen.print_line(f"{owner['namespace']}/{owner['workload']} can't make its pods: {message}", "yellow")


def _show_attempts(asking: Asking, answer: Json, namespace: str) -> None:
    if print_document(asking.output, answer, lambda document: document["items"]):
        return
    columns = ["POD", "AGO", "STATUS", "NODE", "REASONS"]
    if asking.output == "wide":
        columns += ["WORKLOAD", "SCHEDULER", "ATTEMPT"]
    headline = format_count(answer["total"], "attempt") if answer["total"] else "No attempt was found"
    _show(asking, _add_namespace(namespace, headline), columns, _to_attempt_rows(answer), answer["total"])


def _show(asking: Asking, headline: str, columns: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Screen:
    screen = Screen()
    screen.print_line(headline, "bold")
    if rows:
        screen.skip_line()
        screen.print_table(columns, (row[: len(columns)] for row in rows), is_wide=asking.output == "wide")
    if total > len(rows):
        screen.skip_line()
        screen.print_line(f"The first {len(rows)}; --limit shows more.", "dim")
    return screen


def _add_namespace(namespace: str, headline: str) -> str:
    return f"{headline} in namespace {namespace}." if namespace else f"{headline}."


def _to_attempt_rows(answer: Json) -> list[list[str]]:
    now = datetime.now(UTC)
    return [
        [
            f"{item['namespace']}/{item['name']}",
            format_age(item["started_at"], now),
            to_status_word(item["status"]),
            item["chosen"] or "",
            waiting.shorten_reasons(item["reasons"]),
            item["workload"],
            item["scheduler"],
            item["attempt_id"],
        ]
        for item in answer["items"]
    ]
