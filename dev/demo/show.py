"""Prints answers: a table for people, then the JSON that a program gets."""

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from dev.demo.reader import build_schedulerlog_path
from dev.demo.scenarios import ScenarioAnswer

COLOURS = {"passed": "green", "succeeded": "green", "failed": "red", "pending": "yellow"}


def show_answer(console: Console, answer: ScenarioAnswer) -> None:
    console.rule(f"[bold]{answer.pod}[/]: {answer.title}")
    if isinstance(answer.actual, dict) and "filter" in answer.actual:
        _show_schedulerlog(console, answer)
    else:
        console.print_json(json.dumps(answer.actual))
    show_verdict(console, answer)


def show_verdict(console: Console, answer: ScenarioAnswer) -> None:
    if answer.is_right:
        console.print("[green]as expected[/]")
        return
    console.print("[bold red]not the expected answer[/]")
    console.print(answer.describe_difference(), markup=False, highlight=False)


def _show_schedulerlog(console: Console, answer: ScenarioAnswer) -> None:
    log = answer.actual
    colour = COLOURS.get(log["status"], "white")
    console.print(
        f"status [bold {colour}]{log['status']}[/]   GET {build_schedulerlog_path(answer.pod)}", highlight=False
    )
    table = Table("node", "verdict", "score", Column("why", overflow="fold"), box=None, pad_edge=False)
    for node in log["filter"]["nodes"]:
        reasons = "; ".join(
            f"{container['name']}: {container['reason']}" for container in node["containers"] if "reason" in container
        )
        verdict = f"[{COLOURS[node['status']]}]{node['status']}[/]"
        table.add_row(node["name"], verdict, f"{node['score']:.2f}", escape(reasons))
    console.print(table)
    for phase in ("filter", "bind"):
        if log[phase]["status"]:
            console.print(f"{phase} {log[phase]['status']}: {log[phase]['summary']}", highlight=False, markup=False)
    console.print_json(json.dumps(log))


def create_console() -> Console:
    """Create a console as wide as the terminal; without a terminal, wide enough for a reason on one line."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=160)


def show_messages(console: Console, answer: ScenarioAnswer) -> None:
    console.print(f"[bold]{answer.pod}[/]")
    table = Table("type", "reason", Column("message", overflow="fold"), box=None, pad_edge=False)
    for severity, reason, message in answer.actual:
        table.add_row(severity, reason, escape(message))
    console.print(table)
    show_verdict(console, answer)
