"""``schedulerlog why POD``: why it waits, or why it is where it is."""

from collections.abc import Sequence
from typing import Annotated

import typer

from cli.client.problems import Problem
from cli.client.requests import of_pod
from cli.client.transport import NO_QUERY, Query, Transport
from cli.terminal.answers import answered, is_printed
from cli.terminal.diagnosed import show_diagnosis
from cli.terminal.exit_codes import PLACED, USAGE, WAITING, code_of_state
from cli.terminal.node_rows import node_rows
from cli.terminal.options import Asking, asks
from cli.terminal.screen import Screen, counted
from cli.terminal.times import clock
from runtime.cli.cli import fail
from schemas.json_types import Json


@asks
def why(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
    attempt: Annotated[str, typer.Option(metavar="ID", help="As it was at this attempt; default: now.")] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="The answer again after each further decision.")] = False,
) -> None:
    """Why a pod waits, or why it is where it is; what would have to change.

    \b
    Examples:
      schedulerlog why deepseek-0
      schedulerlog why llm/deepseek-0 -o wide
      schedulerlog why deepseek-0 -n llm -o json

    Ends with 0 where the pod is placed, 1 where it was refused or waits, 3 where nothing is known of it, 4 where you
    may not read it, 5 where the API does not answer.
    """
    namespace, name = asking.pod(pod)
    if watch and attempt:
        fail("--watch: an attempt does not change: leave out --attempt", USAGE)
    transport = asking.transport()
    code = _answer(asking, transport, namespace, name, attempt)
    if watch:
        from cli.terminal.watching import later_changes

        for _ in later_changes(transport, of_pod(namespace, name, "schedulerlog"), {}):
            Screen().rule()
            code = _answer(asking, transport, namespace, name, attempt)
    raise typer.Exit(code)


def _answer(asking: Asking, transport: Transport, namespace: str, name: str, attempt: str) -> int:
    """Prints the answer and returns its exit code."""
    diagnosis = answered(transport.get(of_pod(namespace, name, "diagnosis"), {"attempt": attempt}))
    code = code_of_state(diagnosis["state"])
    if is_printed(asking.output, diagnosis, lambda found: [found]):
        return code
    log = f"/attempts/{attempt}" if attempt else of_pod(namespace, name, "schedulerlog")
    beside: list[tuple[str, Query]] = [(log, {"detail": "full"})]
    if code == WAITING:
        beside.append((of_pod(namespace, name, "suggestions"), {"attempt": attempt}))
    elif code == PLACED and not attempt:
        beside.append((of_pod(namespace, name, "scores"), NO_QUERY))
    nodes, *others = _at_once(transport, beside)
    other = others[0] if others else None
    screen, is_wide = Screen(), asking.output == "wide"
    show_diagnosis(screen, diagnosis, other if code == WAITING else None, is_wide=is_wide)
    if code == PLACED:
        _show_scores(screen, other)
    show_nodes(screen, nodes, is_wide=is_wide)
    return code


def _at_once(transport: Transport, asked: Sequence[tuple[str, Query]]) -> list[Json | Problem]:
    """The answers in order; kubectl takes a while to start, each time."""
    # With what it imports, 20 ms that `explain` does without.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda request: transport.get(*request), asked))


def _show_scores(screen: Screen, scores: Json | Problem | None) -> None:
    """Why this node and not the next best one."""
    if not isinstance(scores, dict) or not scores["chosen"]:
        return
    own = next((node["score"] for node in scores["nodes"] if node["node"] == scores["chosen"]), None)
    text = f"Why {scores['chosen']}: {scores['node_policy'] or 'its policy'} takes it"
    text += f" with a score of {own:g}" if own is not None else ""
    if other := scores["runner_up"]:
        terms = ", ".join(f"{term} {value:+g}" for term, value in sorted(other["terms"].items()) if value)
        text += f"; the next best, {other['node']}, is {other['behind']:g} behind" + (f" ({terms})" if terms else "")
    screen.blank()
    screen.line(f"{text}.")


def show_nodes(screen: Screen, log: Json | Problem, *, is_wide: bool) -> None:
    """The nodes of the attempt; nothing where it can't be read, as what was asked is answered."""
    if isinstance(log, Problem) or not log["filter"]["nodes"]:
        return
    detail = log["detail"]
    screen.blank()
    judged = f"{detail['fit_nodes']:,} of {counted(detail['offered_nodes'], 'node')} fitted"
    screen.line(f"Attempt {detail['attempt_id']}, {clock(detail['started_at'])} UTC: {judged}", "bold")
    rows = node_rows(log["filter"]["nodes"], detail["chosen"], is_wide=is_wide)
    screen.table(["#NODES", "VERDICT", "WHY", "NAMES"], rows, indent=2)
