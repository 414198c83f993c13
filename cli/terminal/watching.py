"""``schedulerlog watch [POD]``: a line for each change, and ``-w`` of the other commands."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.client.problems import Problem
from cli.client.requests import build_pod_path
from cli.client.transport import BOOKMARK, Transport, WatchedChange
from cli.terminal.answers import end_with
from cli.terminal.exit_codes import INTERRUPTED, PLACED, USAGE, WAITING
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, emit
from cli.terminal.values import to_status_word
from runtime.cli.cli import fail

if TYPE_CHECKING:
    from cli.terminal.notices import Notices


@with_api_options
def watch(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME; default: all that wait.")] = "",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces.")] = False,
    until_placed: Annotated[bool, typer.Option("--until-placed", help="End with 0 when the pod is placed.")] = False,
    webhook_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the address of a chat's webhook (Slack's form): gets a message when what decides about "
            "the pod changes, and when it is placed.",
        ),
    ] = None,
) -> None:
    """Print a line for each decision about a pod, or about all pods that wait, as it happens. Ctrl-C ends it.

    \b
    Examples:
      schedulerlog watch -A
      schedulerlog watch deepseek-0 -n llm --until-placed
      schedulerlog watch -n llm -o json
    """
    transport, code = asking.create_transport(), INTERRUPTED
    if webhook_file and not pod:
        fail("--webhook-file: is about one pod: name it", USAGE)
    if not pod:
        query = {"namespace": "" if all_namespaces else transport.get_namespace()}
        for change in _iterate_changes(follow(transport, "/pending", query)):
            show_change(asking, change)
            code = PLACED
        raise typer.Exit(code)
    namespace, name = asking.parse_pod(pod)
    notices = _create_notices(webhook_file, asking, namespace, name) if webhook_file else None
    for change in _iterate_changes(follow(transport, build_pod_path(namespace, name, "schedulerlog"), {})):
        show_change(asking, change)
        if notices:
            diagnosis = transport.get(build_pod_path(namespace, name, "diagnosis"), {"changes": "false"})
            if not isinstance(diagnosis, Problem):
                notices.send_news(diagnosis)
        code = PLACED if change.object.get("status") == "succeeded" else WAITING
        if until_placed and code == PLACED:
            break
    raise typer.Exit(code)


def _create_notices(file: Path, asking: Asking, namespace: str, name: str) -> "Notices":
    """Create the messages about a pod, with the address of its page where that of the API is known."""
    # Imported late: it brings a client of HTTP.
    from cli.terminal.notices import Notices, read_webhook

    page_url = f"{asking.api_url}/ui/pods/{namespace}/{name}" if asking.api_url else ""
    return Notices(read_webhook(file), page_url)


def follow_later(transport: Transport, path: str, query: Mapping[str, str]) -> Iterator[WatchedChange]:
    """Follow the changes after the current state, until Ctrl-C; an API error ends the command."""
    return _iterate_changes(follow(transport, path, {**query, "sendInitialEvents": "false"}))


def _iterate_changes(changes: Iterator[WatchedChange | Problem]) -> Iterator[WatchedChange]:
    try:
        for change in changes:
            if isinstance(change, Problem):
                end_with(change)
            yield change
    except KeyboardInterrupt:
        return


def show_change(asking: Asking, change: WatchedChange) -> None:
    """Print one line, or the change as JSON."""
    from cli.terminal.answers import to_json_line

    pod_object = change.object
    name, namespace = pod_object["metadata"]["name"], pod_object["metadata"]["namespace"]
    match asking.output:
        case "json" | "yaml":
            emit(to_json_line({"type": change.kind, "object": pod_object}))
        case "name":
            emit(f"pod/{name}")
        case _:
            # When it came: what was there before has its own time in `history`.
            now = datetime.now().astimezone()
            Screen().print_line(f"{now:%H:%M:%S} {namespace}/{name} {_describe_change(change.kind, pod_object)}")


def _describe_change(kind: str, pod_object: dict[str, Any]) -> str:
    if kind == "DELETED":
        return "waits no longer"
    if "filter" in pod_object:
        summary = pod_object["bind"]["summary"] or pod_object["filter"]["summary"]
        return f"{to_status_word(pod_object['status'])}: {summary}"
    obstacle = pod_object.get("obstacle")
    return f"waits: {obstacle['sentence']['en'] if obstacle else ', '.join(pod_object['reasons'])}"


PAUSE_SECONDS: Final = 1.0
"""Pause between the end of a watch and the next one."""


def follow(
    transport: Transport, path: str, query: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
) -> Iterator[WatchedChange | Problem]:
    """Follow every change: where one watch ends, the next one continues.

    Ends only with a problem.
    """
    version = ""
    while True:
        parameters = {**query, "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        if version:
            # What was there before is behind it already.
            parameters.pop("sendInitialEvents", None)
        for change in transport.stream(path, parameters):
            if isinstance(change, Problem):
                yield change
                return
            version = change.version or version
            if change.kind != BOOKMARK:
                yield change
        sleep(PAUSE_SECONDS)
