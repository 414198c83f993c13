"""``schedulerlog list``: the pods that wait, or attempts that are searched for."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from client.transport import Json
from terminal.answers import answered, is_printed
from terminal.options import Asking, asks
from terminal.screen import Screen, counted
from terminal.times import age

REASONS_SHOWN = 2


@asks
def list_pods(
    asking: Asking,
    pending: Annotated[bool, typer.Option("--pending", help="Pods that wait now, the longest wait first.")] = False,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    reason: Annotated[str, typer.Option(metavar="CODE", help="Refused for this reason (docs/reasons.md).")] = "",
    status: Annotated[str, typer.Option(metavar="succeeded|failed|pending", help="Of the attempt.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "",
    search: Annotated[str, typer.Option("--search", "-q", help="Words of messages and reasons.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many rows.")] = 50,
) -> None:
    """The latest attempts of all pods; with --pending the pods that wait.

    \b
    Examples:
      schedulerlog list --pending -A
      schedulerlog list -n llm --reason CardInsufficientMemory --since 2h
      schedulerlog list --pending -n llm -o name
    """
    transport = asking.transport()
    namespace = "" if all_namespaces else transport.namespace()
    query = {"namespace": namespace, "reason": reason, "since": since, "limit": str(limit)}
    if pending:
        answer = answered(transport.get("/pods", query | {"state": "waiting"}))
    else:
        answer = answered(transport.get("/schedulerlogs", query | {"status": status, "q": search}))
    if is_printed(asking, answer, lambda found: found["items"]):
        return
    shown = _waiting if pending else _attempts
    _show(asking, answer, shown(answer), namespace, is_pending=pending)


def _show(asking: Asking, answer: Json, rows: list[list[str]], namespace: str, *, is_pending: bool) -> None:
    screen, where = Screen(), f" in namespace {namespace}" if namespace else ""
    noun = "waiting pod" if is_pending else "attempt"
    screen.line((counted(answer["total"], noun) if answer["total"] else f"No {noun}") + f"{where}.", "bold")
    if not rows:
        return
    columns = ["POD", "WAITS", "#ATTEMPTS", "REASONS"] if is_pending else ["POD", "AGO", "STATUS", "NODE", "REASONS"]
    if asking.output == "wide":
        columns += ["WORKLOAD", "SCHEDULER", "ATTEMPT"]
    screen.blank()
    screen.table(columns, (row[: len(columns)] for row in rows))
    if answer["total"] > len(rows):
        screen.blank()
        screen.line(f"The first {len(rows)}; --limit shows more.", "dim")


def _waiting(answer: Json) -> list[list[str]]:
    now = datetime.now(UTC)
    return [
        [
            _pod(each),
            age(each["created_at"] or each["first_judged_at"], now),
            str(each["attempts"] or ""),
            _few(each["reasons"]),
            each["workload"],
            each["scheduler"],
            each["attempt"].rpartition("/")[2],
        ]
        for each in answer["items"]
    ]


def _attempts(answer: Json) -> list[list[str]]:
    now = datetime.now(UTC)
    return [
        [
            _pod(each),
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


def _pod(item: dict[str, Any]) -> str:
    return f"{item['namespace']}/{item['name']}"


def _few(reasons: list[str]) -> str:
    more = len(reasons) - REASONS_SHOWN
    return ", ".join(reasons[:REASONS_SHOWN]) + (f" +{more}" if more > 0 else "")
