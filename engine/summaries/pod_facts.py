"""Facts about pods that placements are derived from: binds and sightings."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from schemas.events import DeviceAllocation

DELETED: Final = "deleted"


ENDS: Final = frozenset(("Succeeded", "Failed", DELETED))


@dataclass(frozen=True, slots=True)
class BindFact:
    """End of a bind, as the attempt's summary of that ``version`` has it."""

    attempt_id: str
    scheduler: str
    started_at: datetime
    """Start of the attempt."""
    uid: str
    node: str
    time: datetime
    bound: bool
    version: int
    held: tuple[DeviceAllocation, ...] = ()
    first_judged_at: datetime | None = None
    """Start of the pod's first reported attempt."""
    judged_at: datetime | None = None
    """Time at which this attempt had chosen the node."""
    waited_for: tuple[str, ...] = ()
    """Reasons for which the pod's earlier attempts failed."""


@dataclass(frozen=True, slots=True)
class PodSighting:
    """A pod seen on a node (empty: not reported) in a ``state``: a phase, or ``deleted``."""

    uid: str
    node: str
    state: str
    time: datetime
    scheduled: datetime | None = None
    """Time since which the cluster considers the pod scheduled."""
    running_at: datetime | None = None
    """Time at which its first container began to run."""
    held: tuple[DeviceAllocation, ...] = ()
    """Devices that the pod itself claims to hold."""


Fact: TypeAlias = BindFact | PodSighting


def rank_by_time(fact: Fact) -> tuple[datetime, str]:
    return fact.time, repr(fact)


def rank_bind(bind: BindFact) -> tuple[object, ...]:
    """Rank reports of one bind: the one with the greatest key is used."""
    # The fields after the version only break ties, so that the result does not depend on which report came first.
    key = bind.version, bind.bound, len(bind.held), bind.time, bind.node, bind.uid
    return *key, str(bind.first_judged_at), str(bind.judged_at), bind.waited_for


def rank_devices(held: tuple[DeviceAllocation, ...]) -> tuple[object, ...]:
    """Rank reports of the devices that a pod holds: the one with the greatest key is used."""
    amounts = sum(allocation.memory_mib is not None for allocation in held)
    return len(held), amounts, repr(held)
