"""``schedulerlog watch [POD]``: a line for each change, and ``-w`` of the other commands."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from cli.client.changes import WatchedChange
from cli.client.problems import Problem
from cli.client.requests import of_pod
from cli.client.transport import Transport
from cli.client.watch import follow
from cli.terminal.answers import end_with
from cli.terminal.exit_codes import PLACED, WAITING
from cli.terminal.options import Asking, asks
from cli.terminal.screen import Screen, emit
from cli.terminal.words import status_word


@asks
def watch(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME; default: all that wait.")] = "",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    until_placed: Annotated[bool, typer.Option("--until-placed", help="End with 0 when the pod is placed.")] = False,
) -> None:
    """A line for each decision about a pod, or about all pods that wait, as it happens. Ctrl-C ends it.

    \b
    Examples:
      schedulerlog watch -A
      schedulerlog watch deepseek-0 -n llm --until-placed
      schedulerlog watch -n llm -o json
    """
    transport, code = asking.transport(), WAITING
    if not pod:
        query = {"namespace": "" if all_namespaces else transport.namespace()}
        for change in _known(follow(transport, "/pending", query)):
            show_change(asking, change)
        raise typer.Exit(PLACED)
    for change in _known(follow(transport, of_pod(*asking.pod(pod), "schedulerlog"), {})):
        show_change(asking, change)
        code = PLACED if change.object.get("status") == "succeeded" else WAITING
        if until_placed and code == PLACED:
            break
    raise typer.Exit(code)


def later_changes(transport: Transport, path: str, query: Mapping[str, str]) -> Iterator[WatchedChange]:
    """Those that are not known yet; Ctrl-C ends them, a problem the command."""
    return _known(follow(transport, path, {**query, "sendInitialEvents": "false"}))


def _known(found: Iterator[WatchedChange | Problem]) -> Iterator[WatchedChange]:
    try:
        for change in found:
            if isinstance(change, Problem):
                end_with(change)
            yield change
    except KeyboardInterrupt:
        return


def show_change(asking: Asking, change: WatchedChange) -> None:
    """One line, or the change as JSON."""
    from cli.terminal.documents import as_line

    found = change.object
    name, namespace = found["metadata"]["name"], found["metadata"]["namespace"]
    match asking.output:
        case "json" | "yaml":
            emit(as_line({"type": change.kind, "object": found}))
        case "name":
            emit(f"pod/{name}")
        case _:
            # When it came: what was there before has its own time in `history`.
            now = datetime.now().astimezone()
            Screen().line(f"{now:%H:%M:%S} {namespace}/{name} {_what(change.kind, found)}")


def _what(kind: str, found: dict[str, Any]) -> str:
    if kind == "DELETED":
        return "waits no longer"
    if "filter" in found:
        return f"{status_word(found['status'])}: {found['bind']['summary'] or found['filter']['summary']}"
    obstacle = found.get("obstacle")
    return f"waits: {obstacle['sentence']['en'] if obstacle else ', '.join(found['reasons'])}"
