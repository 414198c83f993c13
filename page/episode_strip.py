"""A pod's episodes as bars on one line of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from page.formats import parsed

WIDTH: Final = 1000
MIN_BAR: Final = 6
"""An episode of one attempt has no length; it is drawn so wide."""


@dataclass(frozen=True, slots=True)
class EpisodeBar:
    episode: Mapping[str, Any]
    x: float
    width: float


def episode_strip(episodes: Sequence[Mapping[str, Any]]) -> list[EpisodeBar]:
    """The bars, earliest first; none for fewer than two episodes, which need no drawing.

    ``episodes`` as the history has them, latest first.
    """
    if len(episodes) < 2:
        return []
    begin, end = parsed(episodes[-1]["first_seen_at"]), parsed(episodes[0]["last_seen_at"])
    seconds = max((end - begin).total_seconds(), 1e-6)
    bars: list[EpisodeBar] = []
    for episode in reversed(episodes):
        first, last = (
            (parsed(episode[name]) - begin).total_seconds() / seconds * WIDTH
            for name in ("first_seen_at", "last_seen_at")
        )
        x = min(max(first, 0.0), float(WIDTH - MIN_BAR))
        width = min(max(last - first, float(MIN_BAR)), WIDTH - x)
        bars.append(EpisodeBar(episode, round(x, 1), round(width, 1)))
    return bars
