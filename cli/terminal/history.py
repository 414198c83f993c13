"""``schedulerlog history POD``: its episodes."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.client.requests import build_pod_path
from cli.terminal.answers import print_document, require_answer
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, format_count
from cli.terminal.values import format_age, format_time, parse_time, to_status_word


@with_api_options
def history(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
    limit: Annotated[int, typer.Option(min=1, max=200, help="Number of episodes, the latest first.")] = 20,
) -> None:
    """Show what schedulers decided about a pod, attempt by attempt; the same verdicts in a row are one episode.

    \b
    Examples:
      schedulerlog history deepseek-0 -n llm
      schedulerlog history llm/deepseek-0 --limit 5 -o wide
    """
    namespace, name = asking.parse_pod(pod)
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
    if answer["continue"]:
        screen.skip_line()
        screen.print_line("There are older ones: --limit shows more.", "dim")


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
