"""Heat maps of an attempt: all nodes as tiles of cells coloured by reason, and some nodes' devices with their numbers.

All tiles of a group look alike, so a group is one pattern and two rectangles, however many nodes it has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from page.colours import map_colours
from page.views.amounts import to_natural_order
from page.views.node_groups import NodeGroup, list_codes
from schemas.events import FITS, NOT_REACHED, PICKED

MAX_DRAWN_GROUPS: Final = 60
MAX_TILES_PER_ROW: Final = 80
CELLS_PER_ROW: Final = 8
_GAP: Final = 3


@dataclass(frozen=True, slots=True)
class Cell:
    x: int
    y: int
    colour: str
    """Class of its colour."""


@dataclass(frozen=True, slots=True)
class MappedGroup:
    group: NodeGroup
    y: int
    cells: list[Cell]
    """Cells of one tile."""
    full_rows: int
    last_row: int
    """Tiles of the last row, if it is not full."""


@dataclass(frozen=True, slots=True)
class NodeMap:
    groups: list[MappedGroup]
    cell: int
    """Distance from one cell to the next."""
    tile_width: int
    tile_height: int
    tiles_per_row: int
    height: int
    colours: dict[str, str]
    """Class of the colour of each reason and verdict in it."""

    @property
    def side(self) -> int:
        """Side of a drawn cell: small cells have no gap between them, which would leave half of their colour."""
        return self.cell - 1 if self.cell > 3 else self.cell

    @property
    def width(self) -> int:
        return self.tiles_per_row * self.tile_width


def draw_node_map(groups: Sequence[NodeGroup]) -> NodeMap | None:
    """Draw the map; None if no source reports the devices of any node."""
    groups = groups[:MAX_DRAWN_GROUPS]
    devices = max((len(group.cells) for group in groups), default=0)
    if not devices:
        return None
    nodes = sum(len(group.nodes) for group in groups)
    cell = 12 if nodes <= 100 else 6 if nodes <= 1000 else 3
    columns = min(devices, CELLS_PER_ROW if nodes <= 1000 else 4)
    width, height = columns * cell + _GAP, -(-devices // columns) * cell + _GAP
    per_row = max(1, min(MAX_TILES_PER_ROW, 1200 // width, nodes))
    colours = map_colours(list_codes(groups))
    y, mapped = 0, list[MappedGroup]()
    for group in groups:
        full_rows, last_row = divmod(len(group.nodes), per_row)
        cells = [
            Cell(index % columns * cell, index // columns * cell, colours.get(code, "other"))
            for index, code in enumerate(group.cells or [group.verdict] * devices)
        ]
        mapped.append(MappedGroup(group, y, cells, full_rows, last_row))
        # A little space, so that one group ends where the next begins.
        y += (full_rows + bool(last_row)) * height + 4
    drawn_codes = {code for group in groups for code in group.cells or [group.verdict]}
    return NodeMap(
        mapped, cell, width, height, per_row, y, {code: colours[code] for code in colours if code in drawn_codes}
    )


WOULD_BE_PICKED: Final = "would be picked"
"""The verdict shown for a device that the attempt picked on a node that it did not choose."""


@dataclass(frozen=True, slots=True)
class MappedNode:
    node: str
    container: str
    devices: list[Mapping[str, Any]]
    """Devices as ``DeviceLog``."""


@dataclass(frozen=True, slots=True)
class DeviceMap:
    rows: list[MappedNode]
    colours: dict[str, str]
    """Class of the colour of each verdict."""
    columns: int
    containers: int
    """Number of the pod's containers with a row."""


def draw_device_map(
    devices: Sequence[Mapping[str, Any]], codes: Sequence[str], chosen: str | None = None
) -> DeviceMap | None:
    """Draw the map; None without devices.

    ``devices`` as ``DeviceLog``, ``codes`` in the order of the legend, ``chosen`` the node.
    """
    devices = [
        {**device, "verdict": WOULD_BE_PICKED} if device["verdict"] == PICKED and device["node"] != chosen else device
        for device in devices
    ]
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for device in devices:
        rows.setdefault((device["node"], device["container"]), []).append(device)
    if not rows:
        return None
    verdicts = {device["verdict"] for device in devices}
    others = verdicts - {*codes, PICKED, WOULD_BE_PICKED, FITS, NOT_REACHED}
    colours = map_colours([*codes, *sorted(others)]) | {WOULD_BE_PICKED: "would-be-picked"}
    by_name = sorted(rows.items(), key=lambda item: to_natural_order(item[0][0]))
    judged = [MappedNode(node, container, row) for (node, container), row in by_name]
    drawn_colours = {verdict: colour for verdict, colour in colours.items() if verdict in verdicts}
    containers = len({container for _, container in rows})
    return DeviceMap(judged, drawn_colours, max(map(len, rows.values())), containers)
