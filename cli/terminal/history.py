"""``schedulerlog history POD``: its episodes. Of a workload: its pods, one run after the other."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from cli.client.requests import build_pod_path
from cli.terminal.answers import print_document, require_answer
from cli.terminal.earlier_ends import describe_earlier_ends
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_age, format_time, parse_time, to_status_word
from engine.cases.workload_words import parse_word

_MAX_ATTEMPTS: Final = 200


@with_api_options
def history(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD|KIND/NAME", help="NAME, NAMESPACE/NAME, or job/NAME.")],
    limit: Annotated[int, typer.Option(min=1, max=200, help="Number of episodes, the latest first.")] = 20,
) -> None:
    """Show what schedulers decided about a pod, attempt by attempt; the same verdicts in a row are one episode.

    Of a placed pod that had been refused before, it names the pods whose end on its node came in between. Of a
    workload, such as job/train, it shows the attempts of all its pods, the latest run first.

    \b
    Examples:
      schedulerlog history deepseek-0 -n llm
      schedulerlog history llm/deepseek-0 --limit 5 -o wide
    """
    namespace, word, name = asking.parse_subject(pod)
    if word:
        _show_runs(asking, namespace, word, name)
        return
    transport = asking.create_transport()
    answer = require_answer(
        transport.get(build_pod_path(namespace, name, "schedulerlog/history"), {"limit": str(limit)})
    )
    if print_document(asking.output, answer, lambda document: [document]):
        return
    screen, episodes, now = Screen(), answer["episodes"], datetime.now(UTC)
    attempts = format_count(sum(episode["attempts"] for episode in episodes), "attempt")
    screen.print_line(
        f"{namespace}/{name}: {attempts} in {format_count(len(episodes), 'episode')}, {_describe_latest(episodes)}.",
        "bold",
    )
    screen.skip_line()
    columns = ["LAST SEEN", "FOR", "#ATTEMPTS", "STATUS", "NODE", "REASONS"]
    is_wide = asking.output == "wide"
    screen.print_table(
        [*columns, "ATTEMPT"] if is_wide else columns,
        [_to_row(episode, now, is_wide=is_wide) for episode in episodes],
        is_wide=is_wide,
    )
    for episode in episodes:
        if episode["changes"]:
            screen.skip_line()
            screen.print_line(f"{format_time(episode['first_seen_at'])}: different from the attempt before", "bold")
            for change in episode["changes"]:
                screen.print_line(change.replace(" became ", " → "), indent=2)
    if lines := describe_earlier_ends(transport, namespace, name, episodes):
        screen.skip_line()
        for line in lines:
            screen.print_line(line, indent=0 if line is lines[0] else 2)
    if answer["continue"]:
        screen.skip_line()
        screen.print_line("There are older ones: --limit shows more.", "dim")


def _show_runs(asking: Asking, namespace: str, word: str, name: str) -> None:
    """Show the pods of a workload with the result of their last attempt and the time from the first one to it."""
    kinds = [kind.partition(".")[0] for kind in parse_word(word)]
    query = {"namespace": namespace, "workload": f"{kinds[0]}/{name}", "limit": str(_MAX_ATTEMPTS)}
    answer = require_answer(asking.create_transport().get("/schedulerlogs", query))
    if print_document(asking.output, answer, lambda document: document["items"]):
        return
    runs = group_runs(answer["items"])
    screen = Screen()
    text = f"{format_count(len(answer['items']), 'attempt')} of {format_count(len(runs), 'pod')}"
    screen.print_line(f"{namespace}/{query['workload']}: {text}, the latest first.", "bold")
    if runs:
        screen.skip_line()
        columns = ["FIRST TRIED (UTC)", "FOR", "#ATTEMPTS", "STATUS", "NODE", "POD", "REASONS"]
        screen.print_table(columns, [_to_run_row(run) for run in runs], is_wide=asking.output == "wide")
    if answer["total"] > len(answer["items"]):
        screen.print_line("There are older ones: GET /api/v1/schedulerlogs continues.", "dim")


def group_runs(attempts: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Group attempts by pod, each with its latest attempt first; the pod that was tried first last."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for attempt in sorted(attempts, key=lambda attempt: parse_time(attempt["started_at"]), reverse=True):
        runs.setdefault(attempt["name"], []).append(attempt)
    return sorted(runs.values(), key=lambda run: parse_time(run[-1]["started_at"]), reverse=True)


def _to_run_row(run: Sequence[Mapping[str, Any]]) -> list[str]:
    latest, first = run[0], run[-1]
    return [
        format_time(first["started_at"]),
        format_age(first["started_at"], parse_time(latest["started_at"])),
        str(len(run)),
        to_status_word(latest["status"]),
        latest["chosen"] or "",
        latest["name"],
        ", ".join(dict.fromkeys(reason for attempt in run for reason in attempt["reasons"])),
    ]


def _describe_latest(episodes: list[dict[str, Any]]) -> str:
    if not episodes:
        return "none known"
    latest = episodes[0]
    return f"the latest {to_status_word(latest['status'])}" + (f" on {latest['chosen']}" if latest["chosen"] else "")


def _to_row(episode: dict[str, Any], now: datetime, *, is_wide: bool) -> list[str]:
    row = [
        format_age(episode["last_seen_at"], now) + " ago",
        format_age(episode["first_seen_at"], parse_time(episode["last_seen_at"])),
        str(episode["attempts"]),
        to_status_word(episode["status"]),
        episode["chosen"] or "",
        ", ".join(episode["reasons"]),
    ]
    return [*row, (episode["attempt_ids"] or [""])[0]] if is_wide else row
