"""``schedulerlog recent``: attempts, ends of pods, findings and alerts of the last minutes as one list by time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple

import typer

from cli.client.transport import Transport
from cli.terminal.answers import print_document, require_answer
from cli.terminal.exit_codes import USAGE
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_time, parse_since, parse_time, to_status_word
from runtime.cli.cli import fail
from schemas.json_types import Json

_PAGE: Final = 200
"""Items of each kind that are asked for: more than one reads."""
_PATHS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "attempts": ("/schedulerlogs", {}),
    "ended pods": ("/pods", {"state": "ended"}),
    "findings": ("/findings", {}),
    "alerts": ("/alerts", {"state": "all"}),
}


class Occurrence(NamedTuple):
    """A moment and what happened then."""

    moment: datetime
    kind: str
    subject: str
    text: str


@with_api_options
def recent(
    asking: Asking,
    since: Annotated[str, typer.Option(metavar="TIME", help="10m, 2h, 7d ago, or RFC 3339.")] = "10m",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Records of all namespaces.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=_PAGE, help="Number of rows, the latest first.")] = 50,
) -> None:
    """List what happened lately: attempts, ends of pods, findings and alerts, the latest first.

    \b
    Examples:
      schedulerlog recent -A
      schedulerlog recent -n llm --since 2h
    """
    moment = parse_since(since, datetime.now(UTC))
    if moment is None:
        fail(f"--since: {since!r} is not a time, write 10m, 2h, 7d or RFC 3339", USAGE)
    transport = asking.create_transport()
    namespace = "" if all_namespaces else transport.get_namespace()
    answers = {kind: _ask(transport, kind, namespace, moment) for kind in _PATHS}
    if print_document(asking.output, answers, lambda document: document["attempts"]["items"]):
        return
    occurrences = sorted(iterate_occurrences(answers, moment), reverse=True)
    _show(Screen(), occurrences[:limit], answers, moment, namespace, is_wide=asking.output == "wide")


def _ask(transport: Transport, kind: str, namespace: str, moment: datetime) -> Json:
    path, query = _PATHS[kind]
    # Alerts have no range: the API has those that fire, and the last day's.
    ranged = {} if kind == "alerts" else {"since": moment.isoformat().replace("+00:00", "Z")}
    return require_answer(transport.get(path, {"namespace": namespace, "limit": str(_PAGE), **query, **ranged}))


def iterate_occurrences(answers: Mapping[str, Json], since: datetime) -> Iterator[Occurrence]:
    """Iterate over what the answers have since a moment."""
    for item in answers["attempts"]["items"]:
        node = f" on {item['chosen']}" if item["chosen"] else ""
        text = f"{to_status_word(item['status'])}{node}" + "".join(f", {reason}" for reason in item["reasons"][:3])
        yield Occurrence(parse_time(item["started_at"]), "attempt", _name_pod(item), text)
    for item in answers["ended pods"]["items"]:
        # A list of the range has what overlaps it, and its times are milliseconds.
        if item["ended_at"] and (ended := parse_time(item["ended_at"])) >= since:
            devices = format_count(len({device["uuid"] for device in item["devices"]}), "device")
            yield Occurrence(ended, "end", _name_pod(item), f"{item['ended_by']} on {item['node']}, held {devices}")
    for item in answers["findings"]["items"]:
        numbers = ", ".join(f"{name} {number:,}" for name, number in item["numbers"].items())
        yield Occurrence(parse_time(item["found_at"]), "finding", _name_pod(item), f"{item['finding']}: {numbers}")
    for item in answers["alerts"]["items"]:
        if (changed := parse_time(item["changed_at"])) >= since:
            yield Occurrence(changed, f"alert {item['state']}", item["rule"], item["summary"])


def _name_pod(item: Mapping[str, Any]) -> str:
    return f"{item['namespace']}/{item['name']}"


def _show(
    screen: Screen,
    occurrences: Sequence[Occurrence],
    answers: Mapping[str, Json],
    since: datetime,
    namespace: str,
    *,
    is_wide: bool,
) -> None:
    where = f" in namespace {namespace}" if namespace else ""
    start = format_time(since.isoformat())
    if not occurrences:
        screen.print_line(f"Nothing was recorded{where} since {start} UTC.", "bold")
    else:
        screen.print_line(f"{format_count(len(occurrences), 'record')}{where} since {start} UTC.", "bold")
        screen.skip_line()
        rows = [[format_time(entry.moment.isoformat()), entry.kind, entry.subject, entry.text] for entry in occurrences]
        screen.print_table(["TIME (UTC)", "WHAT", "OF", "RESULT"], rows, is_wide=is_wide)
    for kind, answer in answers.items():
        if answer["total"] > len(answer["items"]):
            screen.print_line(f"Of {answer['total']:,} {kind} the latest {len(answer['items'])} were read.", "dim")
    if not answers["alerts"]["is_current"]:
        screen.print_line("No process evaluates the rules of alerts, so that none may be missing here.", "yellow")
