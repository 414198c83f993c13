"""The devices of some nodes as one attempt judged them: rows of cells with the numbers of each device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from page.node_map import colour_of
from page.views.natural_order import natural_order
from schemas.events import FITS, NOT_REACHED, PICKED

WOULD_BE_PICKED: Final = "would be picked"
"""The verdict shown for a device that the attempt picked on a node that it did not choose."""


@dataclass(frozen=True, slots=True)
class MappedNode:
    node: str
    container: str
    devices: list[Mapping[str, Any]]
    """As ``DeviceLog``."""


@dataclass(frozen=True, slots=True)
class DeviceMap:
    rows: list[MappedNode]
    colours: dict[str, str]
    """Verdict to the class of its colour."""
    columns: int
    containers: int
    """How many of the pod's have a row."""


def device_map(
    devices: Sequence[Mapping[str, Any]], codes: Sequence[str], chosen: str | None = None
) -> DeviceMap | None:
    """``devices`` as ``DeviceLog``, ``codes`` in the order of their colours, ``chosen`` the node; None without any."""
    devices = [
        {**device, "verdict": WOULD_BE_PICKED} if device["verdict"] == PICKED and device["node"] != chosen else device
        for device in devices
    ]
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for device in devices:
        rows.setdefault((device["node"], device["container"]), []).append(device)
    if not rows:
        return None
    found = {device["verdict"] for device in devices}
    others = found - {*codes, PICKED, WOULD_BE_PICKED, FITS, NOT_REACHED}
    colours = colour_of([*codes, *sorted(others)]) | {WOULD_BE_PICKED: "would-be-picked"}
    by_name = sorted(rows.items(), key=lambda item: natural_order(item[0][0]))
    judged = [MappedNode(node, container, row) for (node, container), row in by_name]
    shown = {verdict: colour for verdict, colour in colours.items() if verdict in found}
    containers = len({container for _, container in rows})
    return DeviceMap(judged, shown, max(map(len, rows.values())), containers)
