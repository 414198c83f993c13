"""Decisions of DynamicResources about a pod: the results of `judge`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.claims.quantity import Quantity
from engine.filters.verdicts import PluginRefusal

_MAX_LINE: Final = 1_000


def to_line(text: str) -> str:
    """Convert a text with parts of objects into one line that a terminal can show, and cut what is too long."""
    line = text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}…"
    return line if line.isprintable() else repr(line)[1:-1]


@dataclass(frozen=True, slots=True)
class NodeClaimsVerdict:
    """The verdict on one node; neither refusal nor cause where the node passes.

    unjudged: why there is no verdict, in one line. unavailable: positions of allocated claims that keep the node from
    being chosen.
    """

    refusal: PluginRefusal | None = None
    unjudged: str = ""
    unavailable: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceGrant:
    """A device that the search finds for a request of a claim. consumed: capacity, of a device that is shared."""

    request: str
    driver: str
    pool: str
    device: str
    consumed: Mapping[str, Quantity]
    has_admin_access: bool


@dataclass(frozen=True, slots=True)
class ClaimAllocation:
    """The devices that the search finds for a claim."""

    claim: str
    devices: tuple[DeviceGrant, ...]
