"""Facts about pods that placements are derived from: binds, sightings and descriptions. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from schemas.events import DeviceAllocation, PodDescription

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
    obstacle: str = ""
    """Code of the obstacle that kept the pod longest before this attempt; empty where none is known."""


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


@dataclass(frozen=True, slots=True)
class LayerMark:
    """The layer that holds a waiting pod from a time on, until its next mark."""

    uid: str
    layer: str
    time: datetime


Fact: TypeAlias = BindFact | PodSighting


def rank_by_time(fact: Fact) -> tuple[datetime, str]:
    return fact.time, repr(fact)


def rank_bind(bind: BindFact) -> tuple[object, ...]:
    """Rank reports of one bind: the one with the greatest key is used."""
    # The fields after the version only break ties, so that the result does not depend on which report came first.
    key = bind.version, bind.bound, len(bind.held), bind.time, bind.node, bind.uid
    return *key, str(bind.first_judged_at), str(bind.judged_at), bind.waited_for, bind.obstacle


def rank_devices(held: tuple[DeviceAllocation, ...]) -> tuple[object, ...]:
    """Rank reports of the devices that a pod holds: the one with the greatest key is used."""
    amounts = sum(allocation.memory_mib is not None for allocation in held)
    return len(held), amounts, repr(held)


def merge_descriptions(one_description: PodDescription | None, other: PodDescription | None) -> PodDescription | None:
    """Merge the descriptions of two sources, each field from the one that says more of it. Order and repetition do not
    matter."""
    if one_description is None or other is None or one_description == other:
        return one_description or other
    created = [description.created_at for description in (one_description, other) if description.created_at]
    priorities = [description.priority for description in (one_description, other) if description.priority is not None]
    return PodDescription(
        created_at=min(created, default=None),
        # The longer chain reaches further up; a source may name only the pod's direct controller.
        owners=max(one_description.owners, other.owners, key=lambda owners: (len(owners), repr(owners))),
        # An empty text is smaller than any other.
        pod_group=max(one_description.pod_group, other.pod_group),
        queue=max(one_description.queue, other.queue),
        priority_class=max(one_description.priority_class, other.priority_class),
        priority=max(priorities, default=None),
        service_account=max(one_description.service_account, other.service_account),
        labels={
            name: max(one_description.labels.get(name, ""), other.labels.get(name, ""))
            for name in sorted(one_description.labels.keys() | other.labels.keys())
        },
    )
