"""Bars over time: the pods on each device as a line per device, a pod's episodes and its waits on one line each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from page.colours import choose_colour
from page.formats import parse_time

WIDTH: Final = 1000
"""Width of the drawing in its own units; the page stretches it."""
LANE_HEIGHT: Final = 18
MIN_BAR: Final = 3


@dataclass(frozen=True, slots=True)
class Bar:
    placement: Mapping[str, Any]
    device: Mapping[str, Any]
    x: float
    width: float
    lane: int
    colour: str
    """Last part of its colour's class, equal for all bars of a pod."""


@dataclass(frozen=True, slots=True)
class DeviceTimeline:
    uuid: str
    lanes: int
    """Largest number of pods that held it at once."""
    bars: list[Bar]

    @property
    def height(self) -> int:
        return max(1, self.lanes) * LANE_HEIGHT


_MARGIN: Final = 0.1
"""Share of the drawing before its first bar."""


def fit_begin(placements: Sequence[Mapping[str, Any]], begin: datetime, end: datetime) -> datetime:
    """Choose the begin of a drawing whose range nobody chose: placements of three minutes fill no day."""
    first = min((parse_time(placement["started_at"]) for placement in placements), default=begin)
    length = max(end - first, timedelta(minutes=1))
    return max(begin, end - (1 + _MARGIN) * length)


def draw_device_lines(
    placements: Sequence[Mapping[str, Any]], uuids: Sequence[str], begin: datetime, end: datetime
) -> list[DeviceTimeline]:
    """Draw a line for each of ``uuids``, then for each other device that was held between ``begin`` and ``end``."""
    held: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {uuid: [] for uuid in uuids}
    for placement in placements:
        for device in placement["devices"]:
            held.setdefault(device["uuid"], []).append((placement, device))
    return [_draw_line(uuid, device_placements, begin, end) for uuid, device_placements in held.items()]


def map_pod_colours(lines: Sequence[DeviceTimeline]) -> dict[tuple[str, str], str]:
    """Map namespace and name of each drawn pod to its colour, in the order of the lines."""
    return {(bar.placement["namespace"], bar.placement["name"]): bar.colour for line in lines for bar in line.bars}


def _draw_line(
    uuid: str, placements: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], begin: datetime, end: datetime
) -> DeviceTimeline:
    seconds = (end - begin).total_seconds()
    ends: list[float] = []
    bars: list[Bar] = []
    for placement, device in sorted(placements, key=lambda pair: str(pair[0]["started_at"])):
        start = (parse_time(placement["started_at"]) - begin).total_seconds() / seconds * WIDTH
        stop = float(WIDTH)
        if placement["ended_at"]:
            stop = (parse_time(placement["ended_at"]) - begin).total_seconds() / seconds * WIDTH
        start, stop = max(0.0, start), min(float(WIDTH), stop)
        if stop < 0 or start > WIDTH:
            continue
        width = max(float(MIN_BAR), stop - start)
        # The first lane that is free again.
        lane = next((number for number, taken in enumerate(ends) if taken <= start), len(ends))
        ends[lane : lane + 1] = [start + width]
        colour = choose_colour(f"{placement['namespace']}/{placement['name']}")
        bars.append(Bar(placement, device, round(start, 1), round(width, 1), lane, colour))
    return DeviceTimeline(uuid, len(ends), bars)


@dataclass(frozen=True, slots=True)
class WaitBar:
    """Time in one layer. x, width: on the line of the whole wait."""

    wait: Mapping[str, Any]
    x: float
    width: float


def find_ends(waits: Sequence[Mapping[str, Any]]) -> tuple[datetime, datetime]:
    """Find the time at which the first wait began and the one at which the last of them ended, or has not."""
    begins = [parse_time(wait["since"]) for wait in waits]
    ends = [begin + timedelta(seconds=wait["waited_seconds"]) for begin, wait in zip(begins, waits, strict=True)]
    return min(begins), max(ends)


def draw_waits(waits: Sequence[Mapping[str, Any]]) -> list[WaitBar]:
    """Draw the time in each layer where it was; none without any time."""
    if not any(wait["waited_seconds"] > 0 for wait in waits):
        return []
    begin, end = find_ends(waits)
    scale = WIDTH / (end - begin).total_seconds()
    return [
        WaitBar(
            wait,
            round((parse_time(wait["since"]) - begin).total_seconds() * scale, 1),
            round(wait["waited_seconds"] * scale, 1),
        )
        for wait in waits
    ]


MIN_EPISODE: Final = 6
"""Width of an episode of one attempt, which has no length."""


@dataclass(frozen=True, slots=True)
class EpisodeBar:
    episode: Mapping[str, Any]
    x: float
    width: float


def draw_episodes(episodes: Sequence[Mapping[str, Any]]) -> list[EpisodeBar]:
    """Draw the bars, earliest first; none for fewer than two episodes, which need no drawing.

    ``episodes`` as the history has them, latest first.
    """
    if len(episodes) < 2:
        return []
    begin, end = parse_time(episodes[-1]["first_seen_at"]), parse_time(episodes[0]["last_seen_at"])
    seconds = max((end - begin).total_seconds(), 1e-6)
    bars: list[EpisodeBar] = []
    for episode in reversed(episodes):
        first, last = (
            (parse_time(episode[name]) - begin).total_seconds() / seconds * WIDTH
            for name in ("first_seen_at", "last_seen_at")
        )
        x = min(max(first, 0.0), float(WIDTH - MIN_EPISODE))
        width = min(max(last - first, float(MIN_EPISODE)), WIDTH - x)
        bars.append(EpisodeBar(episode, round(x, 1), round(width, 1)))
    return bars
