"""A workload on the screen: its sentence, its pods by what keeps them, and the time line over the layers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cli.client.problems import Problem
from cli.terminal.details import format_took, join_names, show_current_wait
from cli.terminal.diagnosed import show_obstacle, show_suggestions
from cli.terminal.exit_codes import PLACED, WAITING
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_time
from schemas.json_types import Json

Suggest = Callable[[Json], Json | Problem | None]
"""Suggests changes after which a pod of this diagnosis fits."""


def to_workload_exit_code(answer: Json) -> int:
    """Convert the state of a workload: only one that waits is not where it should be."""
    return WAITING if answer["state"] == "waiting" else PLACED


def iterate_pods(answer: Json) -> Iterator[Mapping[str, Any]]:
    """Iterate over the pods that the answer names."""
    return ({"name": name} for group in answer["groups"] for name in group["pods"])


def show_workload(screen: Screen, answer: Json, suggest: Suggest, *, is_wide: bool) -> None:
    """Show the sentence, the decisive group with cause and remedy, the other groups, and the time line."""
    kind = answer["kind"].partition(".")[0]
    screen.print_line(f"{kind} {answer['namespace']}/{answer['name']}: {answer['sentence']['en']}", "bold")
    groups = answer["groups"]
    if groups and (obstacle := groups[0]["obstacle"]):
        screen.skip_line()
        show_obstacle(screen, obstacle)
        diagnosis = groups[0]["diagnosis"]
        suggestions = suggest(diagnosis) if diagnosis and groups[0]["pods"] else None
        if isinstance(suggestions, dict) and suggestions["items"]:
            show_suggestions(screen, suggestions)
    if len(groups) > 1 or (groups and groups[0]["pods"]):
        screen.skip_line()
        rows = [_to_row(group, is_wide=is_wide) for group in groups]
        screen.print_table(["#PODS", "STATE", "WHY", "NAMES"], rows, is_wide=is_wide)
    _show_timeline(screen, answer["timeline"])
    if groups and groups[0]["diagnosis"]:
        show_current_wait(screen, groups[0]["diagnosis"])


def _to_row(group: Mapping[str, Any], *, is_wide: bool) -> list[str]:
    obstacle = group["obstacle"]
    nodes = f"on {join_names(group['nodes'], is_wide=is_wide)}" if group["nodes"] else ""
    why = obstacle["sentence"]["en"] if obstacle else nodes
    return [f"{group['count']:,}", group["state"], why, join_names(group["pods"], is_wide=is_wide)]


def _show_timeline(screen: Screen, stages: Sequence[Mapping[str, Any]]) -> None:
    if not stages:
        return
    screen.skip_line()
    screen.print_table(["EVENT", "AT (UTC)", "#TOOK", "OBJECT"], map(_to_stage_row, stages))


def _to_stage_row(stage: Mapping[str, Any]) -> list[str]:
    others = f" and {format_count(stage['count'] - 1, 'other')}" if stage["count"] > 1 else ""
    until = f" to {format_time(stage['last_at'])[11:]}" if stage["last_at"][:19] != stage["at"][:19] else ""
    took = format_took(stage["after_seconds"])
    return [stage["event"], f"{format_time(stage['at'])}{until}", took, f"{stage['subject']}{others}"]
