"""The devices of some nodes as one attempt judged them: rows of cells with the numbers of each device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from page.node_map import colour_of


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
    """Of each verdict."""
    columns: int


def device_map(devices: Sequence[Mapping[str, Any]], codes: Sequence[str]) -> DeviceMap | None:
    """``devices`` as ``DeviceLog``, ``codes`` in the order of their colours; None without any."""
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for device in devices:
        rows.setdefault((device["node"], device["container"]), []).append(device)
    if not rows:
        return None
    known = [*codes, *sorted({device["verdict"] for device in devices} - {*codes, "picked", "fits", "not reached"})]
    judged = [MappedNode(node, container, found) for (node, container), found in rows.items()]
    return DeviceMap(judged, colour_of(known), max(map(len, rows.values())))
