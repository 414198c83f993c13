"""The facts about pods that placements are derived from: binds and sightings."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from schemas.events import DeviceAllocation

DELETED: Final = "deleted"


ENDS: Final = frozenset(("Succeeded", "Failed", DELETED))


@dataclass(frozen=True, slots=True)
class BindFact:
    """The end of a bind, as the attempt's summary of that ``version`` has it."""

    attempt_id: str
    scheduler: str
    started_at: datetime
    """The attempt's."""
    uid: str
    node: str
    at: datetime
    bound: bool
    version: int
    held: tuple[DeviceAllocation, ...] = ()
    first_judged_at: datetime | None = None
    """When the pod's first known attempt began."""
    judged_at: datetime | None = None
    """When this attempt had chosen the node."""
    waited_for: tuple[str, ...] = ()
    """The reasons that its attempts before failed for."""


@dataclass(frozen=True, slots=True)
class PodSighting:
    """A pod seen on a node (empty: not known) in a ``state``: a phase, or ``deleted``."""

    uid: str
    node: str
    state: str
    at: datetime
    scheduled: datetime | None = None
    """Since when the cluster says it is scheduled."""
    running_at: datetime | None = None
    """When its first container began to run."""
    held: tuple[DeviceAllocation, ...] = ()
    """The devices that the pod itself says it holds."""


Fact: TypeAlias = BindFact | PodSighting


def by_time(fact: Fact) -> tuple[datetime, str]:
    return fact.at, repr(fact)


def knowledge(bind: BindFact) -> tuple[object, ...]:
    """A sort key: of two reports of one bind the one with the greater key is used."""
    # The fields behind the version only break ties, so that the result does not depend on which report came first.
    known = bind.version, bind.bound, len(bind.held), bind.at, bind.node, bind.uid
    return *known, str(bind.first_judged_at), str(bind.judged_at), bind.waited_for


def knowledge_of_devices(held: tuple[DeviceAllocation, ...]) -> tuple[object, ...]:
    """A sort key: of two reports of what a pod holds the one with the greater key is used."""
    amounts = sum(allocation.memory_mib is not None for allocation in held)
    return len(held), amounts, repr(held)
