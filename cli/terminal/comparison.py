"""``schedulerlog compare POD POD``: what differs between the latest attempts of two pods, by their names."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cli.client.problems import NotFound
from cli.client.requests import build_pod_path
from cli.client.transport import Transport
from cli.terminal.answers import end_with, print_document, require_answer
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, format_count


@with_api_options
def compare(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
    other: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
) -> None:
    """Compare the latest attempts of two pods, such as a placed and a refused one: requests, results, and nodes.

    \b
    Examples:
      schedulerlog compare llm/deepseek-0 llm/deepseek-0
    """
    transport = asking.create_transport()
    ids = [_find_attempt(transport, *asking.parse_pod(name)) for name in (pod, other)]
    answer = require_answer(transport.get(f"/attempts/{ids[0]}/comparison", {"with": ids[1]}))
    if print_document(asking.output, answer):
        return
    # The answer has the earlier attempt first, whichever pod was named first.
    names = (pod, other) if answer["before"].endswith(ids[0]) else (other, pod)
    _show(Screen(), answer, names, is_wide=asking.output == "wide")


def _find_attempt(transport: Transport, namespace: str, name: str) -> str:
    """Find the id of a pod's latest attempt; ends the command where there is none."""
    answer = require_answer(transport.get(build_pod_path(namespace, name, "schedulerlog/history"), {"limit": "1"}))
    ids = [attempt for episode in answer["episodes"] for attempt in episode["attempt_ids"]]
    if not ids:
        end_with(NotFound(f"no attempt of {namespace}/{name} is known", "`schedulerlog why` says what is known of it."))
    return str(ids[0])


def _show(screen: Screen, answer: Mapping[str, Any], names: tuple[str, str], *, is_wide: bool) -> None:
    differing, alike = answer["nodes"], answer["unchanged_nodes"]
    text = f"{format_count(len(differing), 'node')} judged differently, {alike:,} alike"
    screen.print_line(f"{names[0]} and {names[1]}: {text}.", "bold")
    if answer["fields"]:
        screen.skip_line()
        rows = [[field, *values] for field, values in answer["fields"].items()]
        screen.print_table(["DIFFERENCE", *names], rows, is_wide=is_wide)
    if differing:
        screen.skip_line()
        columns = [(change["before"], change["after"]) for change in differing]
        rows = [[(before or after)["node"], *map(_describe_verdict, (before, after))] for before, after in columns]
        screen.print_table(["NODE", *names], rows, is_wide=is_wide)


def _describe_verdict(judged: Mapping[str, Any] | None) -> str:
    if judged is None:
        return "not judged"
    score = f", score {judged['score']:.2f}" if judged["verdict"] in ("picked", "fits") else ""
    return f"{judged['verdict']}{score}"
