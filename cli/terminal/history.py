"""``schedulerlog history POD``: its episodes."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.client.requests import of_pod
from cli.terminal.answers import answered, is_printed
from cli.terminal.options import Asking, asks
from cli.terminal.screen import Screen, counted
from cli.terminal.times import age, clock, read_time
from cli.terminal.words import status_word


@asks
def history(
    asking: Asking,
    pod: Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME.")],
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many episodes, the latest first.")] = 20,
) -> None:
    """What schedulers decided about a pod, attempt by attempt; the same verdicts in a row are one episode.

    \b
    Examples:
      schedulerlog history deepseek-0 -n llm
      schedulerlog history llm/deepseek-0 --limit 5 -o wide
    """
    namespace, name = asking.pod(pod)
    transport = asking.transport()
    answer = answered(transport.get(of_pod(namespace, name, "schedulerlog/history"), {"limit": str(limit)}))
    if is_printed(asking.output, answer, lambda found: [found]):
        return
    screen, episodes, now = Screen(), answer["episodes"], datetime.now(UTC)
    attempts = counted(sum(episode["attempts"] for episode in episodes), "attempt")
    screen.line(f"{namespace}/{name}: {attempts} in {counted(len(episodes), 'episode')}, {_last(episodes)}.", "bold")
    screen.blank()
    columns = ["LAST SEEN", "FOR", "#ATTEMPTS", "STATUS", "NODE", "REASONS"]
    is_wide = asking.output == "wide"
    screen.table(
        [*columns, "ATTEMPT"] if is_wide else columns,
        [_row(episode, now, is_wide=is_wide) for episode in episodes],
        is_wide=is_wide,
    )
    for episode in episodes:
        if episode["changes"]:
            screen.blank()
            screen.line(f"{clock(episode['first_seen_at'])}: what was different from the attempt before", "bold")
            for change in episode["changes"]:
                screen.line(change.replace(" became ", " → "), indent=2)
    if answer["continue"]:
        screen.blank()
        screen.line("There are older ones: --limit shows more.", "dim")


def _last(episodes: list[dict[str, Any]]) -> str:
    if not episodes:
        return "none known"
    latest = episodes[0]
    return f"the latest {status_word(latest['status'])}" + (f" on {latest['chosen']}" if latest["chosen"] else "")


def _row(episode: dict[str, Any], now: datetime, *, is_wide: bool) -> list[str]:
    row = [
        age(episode["last_seen_at"], now) + " ago",
        age(episode["first_seen_at"], read_time(episode["last_seen_at"])),
        str(episode["attempts"]),
        status_word(episode["status"]),
        episode["chosen"] or "",
        ", ".join(episode["reasons"]),
    ]
    return [*row, (episode["attempt_ids"] or [""])[0]] if is_wide else row
