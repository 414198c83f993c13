"""Answers on a terminal: a table a person can read, then the JSON a program would get."""

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from demo.reader import schedulerlog_path
from demo.scenarios import Answer

COLOURS = {"passed": "green", "succeeded": "green", "failed": "red", "pending": "yellow"}


def show_answer(console: Console, answer: Answer) -> None:
    console.rule(f"[bold]{answer.pod}[/]: {answer.title}")
    if isinstance(answer.told, dict) and "filter" in answer.told:
        _show_schedulerlog(console, answer)
    else:
        console.print_json(json.dumps(answer.told))
    show_verdict(console, answer)


def show_verdict(console: Console, answer: Answer) -> None:
    if answer.is_right:
        console.print("[green]as expected[/]")
        return
    console.print("[bold red]not the expected answer[/]")
    console.print(answer.difference(), markup=False, highlight=False)


def _show_schedulerlog(console: Console, answer: Answer) -> None:
    log = answer.told
    colour = COLOURS.get(log["status"], "white")
    console.print(f"status [bold {colour}]{log['status']}[/]   GET {schedulerlog_path(answer.pod)}", highlight=False)
    table = Table("node", "verdict", "score", Column("why", overflow="fold"), box=None, pad_edge=False)
    for node in log["filter"]["nodes"]:
        reasons = "; ".join(f"{each['name']}: {each['reason']}" for each in node["containers"] if "reason" in each)
        verdict = f"[{COLOURS[node['status']]}]{node['status']}[/]"
        table.add_row(node["name"], verdict, f"{node['score']:.2f}", escape(reasons))
    console.print(table)
    for phase in ("filter", "bind"):
        if log[phase]["status"]:
            console.print(f"{phase} {log[phase]['status']}: {log[phase]['summary']}", highlight=False, markup=False)
    console.print_json(json.dumps(log))


def console() -> Console:
    """As wide as the terminal; wide enough for a reason on a line where there is none."""
    ours = Console()
    return ours if ours.is_terminal else Console(width=160)


def show_messages(console: Console, answer: Answer) -> None:
    console.print(f"[bold]{answer.pod}[/]")
    table = Table("type", "reason", Column("message", overflow="fold"), box=None, pad_edge=False)
    for severity, reason, message in answer.told:
        table.add_row(severity, reason, escape(message))
    console.print(table)
    show_verdict(console, answer)
