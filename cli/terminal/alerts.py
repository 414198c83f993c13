"""``schedulerlog alerts``: the alerts that fire, or ended within a day."""

from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from cli.terminal.answers import SentenceLanguage, print_document, require_answer
from cli.terminal.exit_codes import PLACED, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_age
from schemas.json_types import Json

State = Literal["firing", "resolved", "all"]


@with_api_options
def alerts(
    asking: Asking,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Alerts of all namespaces.")] = False,
    state: Annotated[State, typer.Option(metavar="firing|resolved|all", help="Resolved: within 24 hours.")] = "firing",
    rule: Annotated[str, typer.Option(metavar="NAME", help="Only alerts of this rule.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Number of rows.")] = 50,
    *,
    lang: SentenceLanguage,
) -> None:
    """List the alerts that fire, most severe first. Alerts about nodes and schedulers need -A.

    \b
    Examples:
      schedulerlog alerts -A
      schedulerlog alerts -n llm -o json

    Exits with 0 if none fires, 1 if one does, or if no process evaluates the rules.
    """
    transport = asking.create_transport()
    namespace = "" if all_namespaces else transport.get_namespace()
    query = {"namespace": namespace, "state": state, "rule": rule, "limit": str(limit)}
    answer = require_answer(transport.get("/alerts", query), lang)
    if not print_document(asking.output, answer):
        _show(Screen(), answer, state, namespace, lang, is_wide=asking.output == "wide")
    fires = any(alert["state"] == "firing" for alert in answer["items"])
    raise typer.Exit(WAITING if fires or not answer["is_current"] else PLACED)


def _show(screen: Screen, answer: Json, state: State, namespace: str, language: str, *, is_wide: bool) -> None:
    now = datetime.now(UTC)
    where = f" in namespace {namespace}" if namespace else ""
    if answer["total"]:
        screen.print_line(f"{format_count(answer['total'], 'alert')}{where}.", "bold")
    elif answer["is_current"]:
        ends = {
            "firing": "fires",
            "resolved": "ended in the last 24 hours",
            "all": "fires or ended in the last 24 hours",
        }
        screen.print_line(f"No alert {ends[state]}{where}.", "bold")
    if not answer["is_current"]:
        screen.print_line(_describe_late(answer, now), "yellow")
    if not answer["items"]:
        return
    screen.skip_line()
    rows = [
        [
            alert["severity"] if alert["state"] == "firing" else "resolved",
            alert["rule"],
            format_age(alert["started_at"], now),
            # Alerts of older versions have their summary in English only.
            (alert.get("summary_zh") if language == "zh" else "") or alert["summary"],
            alert["evidence"].get("command") or alert["evidence"].get("api", ""),
        ]
        for alert in answer["items"]
    ]
    columns = ["SEVERITY", "RULE", "SINCE", "SUMMARY"] + ["EVIDENCE"] * is_wide
    screen.print_table(columns, (row[: len(columns)] for row in rows), is_wide=is_wide)
    if answer["total"] > len(rows):
        screen.skip_line()
        screen.print_line(f"The first {len(rows)}; --limit shows more.", "dim")


def _describe_late(answer: Json, now: datetime) -> str:
    start = "start `schedulerlog pipeline alerts`, or ask an administrator"
    if not answer["evaluated_until"]:
        return f"No process evaluates the rules, so that nothing can fire: {start}."
    age = format_age(answer["evaluated_until"], now)
    return f"The rules were last evaluated {age} ago, and alerts that began since then are missing: {start}."
