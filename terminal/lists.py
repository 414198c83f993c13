"""``schedulerlog list``: the pods that wait, or attempts that are searched for."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from client.transport import Json
from process.cli import fail
from terminal.answers import answered, is_printed
from terminal.exit_codes import USAGE
from terminal.options import Asking, asks
from terminal.screen import Screen, counted
from terminal.times import age

SHOWN_REASONS = 2


@asks
def list_pods(
    asking: Asking,
    pending: Annotated[bool, typer.Option("--pending", help="What waits now, by workload.")] = False,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    reason: Annotated[str, typer.Option(metavar="CODE", help="Refused for this reason (docs/reasons.md).")] = "",
    status: Annotated[str, typer.Option(metavar="succeeded|failed|pending", help="Of the attempt.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "",
    search: Annotated[str, typer.Option("--search", "-q", help="Words of messages and reasons.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many rows.")] = 50,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="With --pending: then a line for each change.")] = False,
) -> None:
    """The latest attempts of all pods; with --pending what waits.

    \b
    Examples:
      schedulerlog list --pending -A
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
    if pending:
        _show_pending(asking, answered(transport.get("/pending", query)), namespace)
    else:
        _show_attempts(
            asking, answered(transport.get("/schedulerlogs", query | {"status": status, "q": search})), namespace
        )
    if watch:
        from terminal.watching import later_changes, show_change

        for change in later_changes(transport, "/pending", {"namespace": namespace, "reason": reason}):
            show_change(asking, change)


def _show_pending(asking: Asking, answer: Json, namespace: str) -> None:
    if is_printed(asking, answer, _examples):
        return
    workloads = counted(answer["total"], "workload")
    first = f"{counted(answer['pods'], 'pod')} of {workloads} waiting" if answer["total"] else "No pod waits"
    columns = ["WORKLOAD", "#PODS", "WAITS", "REASONS", "LONGEST WAITS"]
    if asking.output == "wide":
        columns += ["QUEUE", "SCHEDULER", "ATTEMPT"]
    screen = _show(first, namespace, columns, _workloads(answer), answer["total"])
    for each in answer["blocked"]:
        screen.blank()
        problem = each["problem"]
        screen.line(f"{each['namespace']}/{each['workload']} can't make its pods: {problem['message']}", "yellow")


def _show_attempts(asking: Asking, answer: Json, namespace: str) -> None:
    if is_printed(asking, answer, lambda found: found["items"]):
        return
    first = counted(answer["total"], "attempt") if answer["total"] else "No attempt"
    columns = ["POD", "AGO", "STATUS", "NODE", "REASONS"]
    if asking.output == "wide":
        columns += ["WORKLOAD", "SCHEDULER", "ATTEMPT"]
    _show(first, namespace, columns, _attempts(answer), answer["total"])


def _show(first: str, namespace: str, columns: list[str], rows: list[list[str]], total: int) -> Screen:
    screen = Screen()
    screen.line(f"{first} in namespace {namespace}." if namespace else f"{first}.", "bold")
    if rows:
        screen.blank()
        screen.table(columns, (row[: len(columns)] for row in rows))
    if total > len(rows):
        screen.blank()
        screen.line(f"The first {len(rows)}; --limit shows more.", "dim")
    return screen


def _examples(answer: Json) -> Iterator[dict[str, Any]]:
    for workload in answer["items"]:
        yield from workload["examples"]


def _workloads(answer: Json) -> list[list[str]]:
    now = datetime.now(UTC)
    return [
        [
            f"{each['namespace']}/{each['workload']}",
            f"{each['pods']:,}",
            age(each["first_judged_at"], now),
            _few(list(each["reasons"])),
            *_longest(each["examples"], each["queue"]),
        ]
        for each in answer["items"]
    ]


def _longest(examples: list[dict[str, Any]], queue: str) -> list[str]:
    if not examples:
        return ["", queue, "", ""]
    pod = examples[0]
    return [pod["name"], queue, pod["scheduler"], pod["attempt"].rpartition("/")[2]]


def _attempts(answer: Json) -> list[list[str]]:
    now = datetime.now(UTC)
    return [
        [
            f"{each['namespace']}/{each['name']}",
            age(each["started_at"], now),
            each["status"],
            each["chosen"] or "",
            _few(each["reasons"]),
            each["workload"],
            each["scheduler"],
            each["attempt_id"],
        ]
        for each in answer["items"]
    ]


def _few(reasons: list[str]) -> str:
    more = len(reasons) - SHOWN_REASONS
    return ", ".join(reasons[:SHOWN_REASONS]) + (f" +{more}" if more > 0 else "")
