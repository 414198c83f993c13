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


@dataclass(frozen=True, slots=True)
class PodSighting:
    """A pod seen on a node (empty: not known) in a ``state``: a phase, or ``deleted``."""

    uid: str
    node: str
    state: str
    at: datetime
    scheduled: datetime | None = None
    """Since when the cluster says it is scheduled."""


Fact: TypeAlias = BindFact | PodSighting


def by_time(fact: Fact) -> tuple[datetime, str]:
    return fact.at, repr(fact)


def knowledge(bind: BindFact) -> tuple[object, ...]:
    """A sort key: of two reports of one bind the one with the greater key is used."""
    # The fields behind the version only break ties, so that the result does not depend on which report came first.
    return bind.version, bind.bound, len(bind.held), bind.at, bind.node, bind.uid
