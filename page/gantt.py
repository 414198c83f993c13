"""Who held which device over time: placements as bars on a line per device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from page.formats import parsed

WIDTH: Final = 1000
"""Width of the drawing in its own units; the page stretches it."""
LANE_HEIGHT: Final = 18
COLOURS: Final = 12
MIN_BAR: Final = 3


@dataclass(frozen=True, slots=True)
class Bar:
    placement: Mapping[str, Any]
    device: Mapping[str, Any]
    x: float
    width: float
    lane: int
    colour: int
    """The same for all bars of a pod."""


@dataclass(frozen=True, slots=True)
class DeviceTimeline:
    uuid: str
    lanes: int
    """How many pods held it at once, at most."""
    bars: list[Bar]

    @property
    def height(self) -> int:
        return max(1, self.lanes) * LANE_HEIGHT


def device_lines(
    placements: Sequence[Mapping[str, Any]], uuids: Sequence[str], begin: datetime, end: datetime
) -> list[DeviceTimeline]:
    """A line for each of ``uuids`` and then for each other device that was held between ``begin`` and ``end``."""
    held: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {uuid: [] for uuid in uuids}
    for placement in placements:
        for device in placement["devices"]:
            held.setdefault(device["uuid"], []).append((placement, device))
    return [_line(uuid, found, begin, end) for uuid, found in held.items()]


def holders(lines: Sequence[DeviceTimeline]) -> dict[tuple[str, str], int]:
    """Namespace and name of each drawn pod, and its colour, in the order of the lines."""
    return {(bar.placement["namespace"], bar.placement["name"]): bar.colour for line in lines for bar in line.bars}


def _line(
    uuid: str, found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], begin: datetime, end: datetime
) -> DeviceTimeline:
    seconds = (end - begin).total_seconds()
    ends: list[float] = []
    bars: list[Bar] = []
    for placement, device in sorted(found, key=lambda pair: str(pair[0]["started_at"])):
        start = (parsed(placement["started_at"]) - begin).total_seconds() / seconds * WIDTH
        stop = float(WIDTH)
        if placement["ended_at"]:
            stop = (parsed(placement["ended_at"]) - begin).total_seconds() / seconds * WIDTH
        start, stop = max(0.0, start), min(float(WIDTH), stop)
        if stop < 0 or start > WIDTH:
            continue
        width = max(float(MIN_BAR), stop - start)
        # The first lane that is free again.
        lane = next((number for number, taken in enumerate(ends) if taken <= start), len(ends))
        ends[lane : lane + 1] = [start + width]
        colour = _colour(f"{placement['namespace']}/{placement['name']}")
        bars.append(Bar(placement, device, round(start, 1), round(width, 1), lane, colour))
    return DeviceTimeline(uuid, len(ends), bars)


def _colour(name: str) -> int:
    # Python's own hash differs from process to process.
    return sum(place * ord(character) for place, character in enumerate(name, 1)) % COLOURS
