"""Colours of reasons: a reason has the same colour on every page, in every file and in every plot."""

from collections.abc import Sequence
from itertools import cycle
from typing import Final

from engine.hami.reason_codes import ReasonCode
from page.views.node_groups import FITS, NOT_REACHED, PICKED
from schemas.reasons import read_catalogue

COLOURS: Final = 12
"""Number of colours in the style sheets; none of them is green, which means free or fitting."""
_FREQUENT: Final = (
    ReasonCode.CARD_INSUFFICIENT_MEMORY,
    ReasonCode.CARD_INSUFFICIENT_CORE,
    ReasonCode.CARD_TYPE_MISMATCH,
    ReasonCode.CARD_NOT_HEALTH,
    ReasonCode.NUMA_NOT_FIT,
    ReasonCode.CARD_CORDONED,
    ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT,
    ReasonCode.CARD_TIME_SLICING_EXHAUSTED,
    ReasonCode.CARD_UUID_MISMATCH,
    ReasonCode.NODE_INSUFFICIENT_DEVICE,
    ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST,
    ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED,
)
"""Frequent reasons that stand next to each other in the map of one pod; each has a colour of its own."""
_RESULTS: Final = {"succeeded": FITS, "failed": "0", "pending": "1"}
_LAYERS: Final = {"queue": "1", "gate": "4", "nodes": "0", "bind": "3", "start": FITS}
"""Layers in the colours of ``.waits`` in the style sheet, which the time line of a pod has."""
_NAMELESS: Final = ("rest", "not-reached")
"""Greys of what has no name: of what is not listed, and of what is not known."""
VERDICTS: Final = {PICKED: "picked", FITS: "fits", NOT_REACHED: "not-reached"}
"""Verdicts with the class of their colour."""


def choose_colour(name: str) -> str:
    """Choose the last part of the colour's class, from the name only; frequent reasons have a colour of their own."""
    if name in _RESULTS or name in _LAYERS:
        return (_RESULTS | _LAYERS)[name]
    if name in _FREQUENT:
        return str(_FREQUENT.index(name))
    # Python's own hash differs from process to process.
    return str(sum(index * ord(character) for index, character in enumerate(name, 1)) % COLOURS)


def choose_colours(names: Sequence[str]) -> list[str]:
    """Choose the colours of names in one drawing, the most important name first; the empty name is what has no name.

    Codes of reasons, results and layers have their own. Other names, as those of teams, get the next colour where a
    name before them has theirs, so that a dozen differ.
    """
    chosen = {
        name: choose_colour(name) for name in names if name in _RESULTS or name in _LAYERS or name in read_catalogue()
    }
    for name in names:
        if name and name not in chosen:
            first = int(choose_colour(name))
            ring = [str((first + step) % COLOURS) for step in range(COLOURS)]
            chosen[name] = next((colour for colour in ring if colour not in chosen.values()), ring[0])
    nameless = cycle(_NAMELESS)
    return [chosen[name] if name else next(nameless) for name in names]


def map_colours(codes: Sequence[str]) -> dict[str, str]:
    """Map each code, and each verdict, to the class of its colour."""
    return {code: f"c{choose_colour(code)}" for code in codes} | VERDICTS
