"""Decisions of DynamicResources about a pod: the results of `judge`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.claims.quantity import Quantity
from engine.filters.verdicts import PluginRefusal

_MAX_LINE: Final = 1_000


class DeviceReason(StrEnum):
    """Reason why a device is not picked."""

    CLASS_NOT_FOUND = "ClassNotFound"
    POOL_OUTDATED = "PoolOutdated"
    POOL_INCOMPLETE = "PoolIncomplete"
    POOL_INVALID = "PoolInvalid"
    NOT_ON_NODE = "DeviceNotOnNode"
    NOT_JUDGED = "NotJudged"
    SELECTOR_ERROR = "SelectorError"
    CLASS_NOT_MATCHED = "ClassNotMatched"
    SELECTOR_NOT_MATCHED = "SelectorNotMatched"
    BINDING_NOT_SUPPORTED = "BindingNotSupported"
    CAPACITY_NOT_DEFINED = "CapacityNotDefined"
    CAPACITY_TOO_SMALL = "CapacityTooSmall"
    CAPACITY_NOT_ALLOWED = "CapacityNotAllowed"
    TAINTED = "DeviceTainted"
    IN_USE = "DeviceInUse"
    CAPACITY_EXHAUSTED = "CapacityExhausted"
    COUNTERS_EXHAUSTED = "CountersExhausted"
    CONSTRAINT_NOT_MET = "ConstraintNotMet"
    TAKEN_BY_POD = "DeviceTakenByPod"
    TOO_FEW = "TooFewDevices"


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
