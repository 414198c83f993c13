"""The heat map of all nodes of an attempt: a tile per node, a cell per device, coloured by reason.

All tiles of a group look the same, so a group is one pattern and two rectangles, however many nodes it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from page.views.node_groups import NodeGroup, codes_of
from schemas.events import FITS, NOT_REACHED, PICKED

COLOURS: Final = 12
MAX_DRAWN_GROUPS: Final = 60
MAX_TILES_PER_ROW: Final = 80
CELLS_PER_ROW: Final = 8
_GAP: Final = 3


@dataclass(frozen=True, slots=True)
class Cell:
    x: int
    y: int
    colour: str
    """The class of its colour."""


@dataclass(frozen=True, slots=True)
class MappedGroup:
    group: NodeGroup
    y: int
    cells: list[Cell]
    """The cells of one tile."""
    full_rows: int
    rest: int
    """Tiles of the last row, where that is not full."""


@dataclass(frozen=True, slots=True)
class NodeMap:
    groups: list[MappedGroup]
    cell: int
    """From one cell to the next."""
    tile_width: int
    tile_height: int
    tiles_per_row: int
    height: int
    colours: dict[str, str]
    """The class of the colour of each reason and verdict in it."""

    @property
    def side(self) -> int:
        """Of a drawn cell: small ones have no gap between them, which would leave half of their colour."""
        return self.cell - 1 if self.cell > 3 else self.cell

    @property
    def width(self) -> int:
        return self.tiles_per_row * self.tile_width


def node_map(groups: Sequence[NodeGroup]) -> NodeMap | None:
    """None where nothing is known of the devices of any node."""
    groups = groups[:MAX_DRAWN_GROUPS]
    devices = max((len(group.cells) for group in groups), default=0)
    if not devices:
        return None
    nodes = sum(len(group.nodes) for group in groups)
    cell = 12 if nodes <= 100 else 6 if nodes <= 1000 else 3
    columns = min(devices, CELLS_PER_ROW if nodes <= 1000 else 4)
    width, height = columns * cell + _GAP, -(-devices // columns) * cell + _GAP
    per_row = max(1, min(MAX_TILES_PER_ROW, 1200 // width, nodes))
    colours = colour_of(codes_of(groups))
    y, mapped = 0, list[MappedGroup]()
    for group in groups:
        full_rows, rest = divmod(len(group.nodes), per_row)
        cells = [
            Cell(place % columns * cell, place // columns * cell, colours.get(code, "other"))
            for place, code in enumerate(group.cells or [group.verdict] * devices)
        ]
        mapped.append(MappedGroup(group, y, cells, full_rows, rest))
        # A little space, so that one group ends where the next begins.
        y += (full_rows + bool(rest)) * height + 4
    shown = {code for group in groups for code in group.cells or [group.verdict]}
    return NodeMap(mapped, cell, width, height, per_row, y, {code: colours[code] for code in colours if code in shown})


def colour_of(codes: Sequence[str]) -> dict[str, str]:
    """The class of each code's colour; those beyond the palette share the last."""
    palette = {code: f"c{min(place, COLOURS - 1)}" for place, code in enumerate(codes)}
    return palette | {PICKED: "picked", FITS: "fits", NOT_REACHED: "not-reached"}
