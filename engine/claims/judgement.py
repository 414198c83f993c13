"""Decisions of DynamicResources about a pod: the results of `judge`."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.claims.quantity import Quantity
from engine.filters.verdicts import PluginRefusal


@dataclass(frozen=True, slots=True)
class NodeClaimsVerdict:
    """The verdict on one node; neither refusal nor cause where the node passes.

    unjudged: why there is no verdict, as a sentence. unavailable: positions of allocated claims that keep the node from
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
