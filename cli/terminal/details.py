"""Details below a diagnosis on the screen: the nodes by their verdicts, and the time line over the layers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cli.client.problems import Problem
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_duration, format_time
from page.views.answered_nodes import group_answered_nodes
from page.views.node_groups import PICKED, UNREGISTERED, NodeGroup
from schemas.json_types import Json

_VERDICTS: Final = {PICKED: "chosen", UNREGISTERED: "not registered"}
SHOWN_NAMES: Final = 3
LAYER_WORDS: Final = {
    "queue": "its queue or quota",
    "gate": "gates, claims or its group",
    "nodes": "a node",
    "bind": "the bind",
    "start": "its start",
}
"""Layers of the diagnosis in words."""


def show_details(screen: Screen, diagnosis: Json, chosen: str, *, is_wide: bool) -> None:
    """Show the nodes and the time line, as far as the diagnosis has them."""
    if nodes := diagnosis.get("nodes"):
        passed = sum(node["status"] == "passed" for node in nodes)
        screen.skip_line()
        counted = ((diagnosis["obstacle"] or {}).get("numbers") or {}).get("of_nodes", 0)
        title = "Nodes" if counted <= len(nodes) else f"Nodes that a record names, of {counted:,}"
        screen.print_line(f"{title}: {passed:,} of {len(nodes):,} would take it", "bold")
        screen.print_table(
            ["#NODES", "VERDICT", "WHY", "NAMES"], to_node_rows(nodes, chosen, is_wide=is_wide), indent=2
        )
    show_timeline(screen, diagnosis.get("timeline") or ())
    show_current_wait(screen, diagnosis)


def show_nodes(screen: Screen, log: Json | Problem, *, is_wide: bool) -> None:
    """Show the nodes of the attempt; nothing if the API does not give them: the question is answered already."""
    if isinstance(log, Problem) or not log["filter"]["nodes"]:
        return
    detail = log["detail"]
    screen.skip_line()
    judged = f"{detail['fit_nodes']:,} of {format_count(detail['offered_nodes'], 'node')} fitted"
    screen.print_line(f"Attempt {detail['attempt_id']}, {format_time(detail['started_at'])} UTC: {judged}", "bold")
    rows = to_node_rows(log["filter"]["nodes"], detail["chosen"], is_wide=is_wide)
    screen.print_table(["#NODES", "VERDICT", "WHY", "NAMES"], rows, indent=2)


def show_scores(screen: Screen, scores: Json | Problem | None) -> None:
    """Show why this node was chosen and not the next best one: terms are what the chosen one has more."""
    if not isinstance(scores, dict) or not scores["chosen"]:
        return
    chosen_score = next((node["score"] for node in scores["nodes"] if node["node"] == scores["chosen"]), None)
    text = f"Why {scores['chosen']}: {scores['node_policy'] or 'its policy'} takes it"
    other = scores["runner_up"]
    if chosen_score is not None:
        text += f" with a score of {chosen_score:.2f}"
        if other:
            sign = "=" if not other["behind"] else "<" if scores["node_policy"] == "spread" else ">"
            text += f" {sign} {other['score']:.2f} of {other['node']}, the next best"
            terms = sorted(other["terms"].items(), key=lambda term: (-round(abs(term[1]), 2), term[0]))
            listed = ", ".join(f"{name} {-value:+.2f}" for name, value in terms if round(value, 2))
            text += f": {listed}" if listed else ""
    screen.skip_line()
    screen.print_line(f"{text}.")


def show_findings(screen: Screen, findings: Sequence[Mapping[str, Any]]) -> None:
    """Show what the attempt's own numbers contradict."""
    if not findings:
        return
    screen.skip_line()
    screen.print_line("Findings: numbers of the attempt that can't be right", "bold")
    for finding in findings:
        where = " ".join(filter(None, (finding["node"], finding["device"])))
        numbers = ", ".join(f"{name} {number:,}" for name, number in finding["numbers"].items())
        screen.print_line(": ".join(filter(None, (f"{finding['finding']} {where}".strip(), numbers))), indent=2)
        for line in finding["evidence"]:
            screen.print_line(line, "dim", indent=4)


def to_node_rows(nodes: Sequence[Mapping[str, Any]], chosen: str | None, *, is_wide: bool) -> list[list[str]]:
    """Number of nodes, verdict, why, names: of ``filter.nodes``. All names where ``is_wide``."""
    return [
        [
            f"{len(node.nodes):,}",
            _VERDICTS.get(node.verdict, node.verdict),
            _explain_verdict(node),
            join_names(node.nodes, is_wide=is_wide),
        ]
        for node in group_answered_nodes(nodes, chosen)
    ]


def join_names(names: Sequence[str], *, is_wide: bool) -> str:
    """Join the first names, and the number of further ones; all names where ``is_wide``."""
    more = 0 if is_wide else len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + f" +{more:,}" if more > 0 else ", ".join(names)


def _explain_verdict(group: NodeGroup) -> str:
    if group.scores:
        low, high = min(group.scores), max(group.scores)
        return f"score {low:g}" if low == high else f"scores {low:g} to {high:g}"
    if group.is_refused and group.container:
        return f"{group.container}: {group.reason or 'failed'}"
    return group.reason


def show_timeline(screen: Screen, moments: Sequence[Mapping[str, Any]]) -> None:
    """Show the moments with their times, and how long it took from each to the next."""
    if not moments:
        return
    screen.skip_line()
    rows = [
        [format_time(moment["at"]), format_took(moment["after_seconds"]), moment["text"]["en"]] for moment in moments
    ]
    screen.print_table(["AT (UTC)", "#TOOK", "EVENT"], rows)


def format_took(seconds: float | None) -> str:
    """Write how long it took since the moment before; empty for the first one."""
    return "" if seconds is None else format_duration(seconds)


def show_current_wait(screen: Screen, diagnosis: Mapping[str, Any]) -> None:
    """Show the layer in which the pod waits now."""
    current = next((wait for wait in diagnosis.get("waits") or () if wait["until"] is None), None)
    if current:
        screen.print_line(
            f"Waits for {LAYER_WORDS[current['layer']]} for {format_duration(current['waited_seconds'])}.", "dim"
        )
