"""``schedulerlog why POD``: why it waits, or why it is where it is."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from cli.client.problems import Problem
from cli.client.requests import build_pod_path
from cli.client.transport import NO_QUERY, Query, Transport
from cli.terminal.answers import print_document, require_answer
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, USAGE, WAITING, to_state_exit_code
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, format_count
from cli.terminal.times import format_time
from page.views.answered_nodes import group_answered_nodes
from page.views.node_groups import PICKED, UNREGISTERED, NodeGroup
from runtime.cli.cli import fail
from schemas.json_types import Json

_VERDICTS: Final = {PICKED: "chosen", UNREGISTERED: "not registered"}
SHOWN_NAMES: Final = 3


@with_api_options
def why(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
    attempt: Annotated[str, typer.Option(metavar="ID", help="Attempt to explain; default: the present state.")] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="The answer again after each further decision.")] = False,
) -> None:
    """Explain why a pod waits, or why it is where it is, and what would have to change.

    \b
    Examples:
      schedulerlog why deepseek-0
      schedulerlog why llm/deepseek-0 -o wide
      schedulerlog why deepseek-0 -n llm -o json

    Exits with 0 if the pod is placed, 1 if it was refused or waits, 3 if nothing is recorded about it, 4 if you may
    not read it, 5 if the API does not answer.
    """
    namespace, name = asking.parse_pod(pod)
    if watch and attempt:
        fail("--watch: an attempt does not change: leave out --attempt", USAGE)
    transport = asking.create_transport()
    code = _answer(asking, transport, namespace, name, attempt)
    if watch:
        from cli.terminal.watching import follow_later

        for _ in follow_later(transport, build_pod_path(namespace, name, "schedulerlog"), {}):
            Screen().draw_rule()
            code = _answer(asking, transport, namespace, name, attempt)
    raise typer.Exit(code)


def _answer(asking: Asking, transport: Transport, namespace: str, name: str, attempt: str) -> int:
    """Print the answer and return its exit code."""
    diagnosis = require_answer(transport.get(build_pod_path(namespace, name, "diagnosis"), {"attempt": attempt}))
    code = to_state_exit_code(diagnosis["state"])
    if print_document(asking.output, diagnosis, lambda document: [document]):
        return code
    log = f"/attempts/{attempt}" if attempt else build_pod_path(namespace, name, "schedulerlog")
    beside: list[tuple[str, Query]] = [(log, {"detail": "full"})]
    if code == WAITING:
        beside.append((build_pod_path(namespace, name, "suggestions"), {"attempt": attempt}))
    elif code == PLACED and not attempt:
        beside.append((build_pod_path(namespace, name, "scores"), NO_QUERY))
    nodes, *others = _fetch_all(transport, beside)
    other = others[0] if others else None
    screen, is_wide = Screen(), asking.output == "wide"
    show_diagnosis(screen, diagnosis, other if code == WAITING else None, is_wide=is_wide)
    if code == PLACED:
        _show_scores(screen, other)
    show_nodes(screen, nodes, is_wide=is_wide)
    return code


def _fetch_all(transport: Transport, requests: Sequence[tuple[str, Query]]) -> list[Json | Problem]:
    """Fetch the answers at the same time, because kubectl takes a while to start; returns them in order."""
    # With what it imports, 20 ms that `explain` does without.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda request: transport.get(*request), requests))


def _show_scores(screen: Screen, scores: Json | Problem | None) -> None:
    """Show why this node was chosen and not the next best one."""
    if not isinstance(scores, dict) or not scores["chosen"]:
        return
    chosen_score = next((node["score"] for node in scores["nodes"] if node["node"] == scores["chosen"]), None)
    text = f"Why {scores['chosen']}: {scores['node_policy'] or 'its policy'} takes it"
    text += f" with a score of {chosen_score:g}" if chosen_score is not None else ""
    if other := scores["runner_up"]:
        terms = ", ".join(f"{term} {value:+g}" for term, value in sorted(other["terms"].items()) if value)
        text += f"; the next best, {other['node']}, is {other['behind']:g} behind" + (f" ({terms})" if terms else "")
    screen.skip_line()
    screen.print_line(f"{text}.")


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


def to_node_rows(nodes: Sequence[Mapping[str, Any]], chosen: str | None, *, is_wide: bool) -> list[list[str]]:
    """Number of nodes, verdict, why, names: of ``filter.nodes``. All names where ``is_wide``."""
    return [
        [
            f"{len(node.nodes):,}",
            _VERDICTS.get(node.verdict, node.verdict),
            _explain_verdict(node),
            _join_names(node.nodes, is_wide),
        ]
        for node in group_answered_nodes(nodes, chosen)
    ]


def _join_names(names: Sequence[str], is_wide: bool) -> str:
    more = 0 if is_wide else len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + f" +{more:,}" if more > 0 else ", ".join(names)


def _explain_verdict(group: NodeGroup) -> str:
    if group.scores:
        low, high = min(group.scores), max(group.scores)
        return f"score {low:g}" if low == high else f"scores {low:g} to {high:g}"
    if group.is_refused and group.container:
        return f"{group.container}: {group.reason or 'failed'}"
    return group.reason
