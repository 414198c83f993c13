"""A pod's time on a node, and the devices allocated to it there."""

from datetime import datetime

from pydantic import Field

from schemas.events.base import Count, Flag, Integer, Model, Moment, PodRef


class DeviceAllocation(Model):
    """One device for one container. None is a number that the source does not say."""

    uuid: str
    container: str
    """The container's name."""
    init: Flag = False
    """True for an init container: it releases the device before the pod's other containers start."""
    model: str = ""
    memory_mib: Integer | None = None
    cores_percent: Integer | None = None
    """Of one device."""
    slots: Count = 1


class PodPlacement(Model):
    """A pod's time on a node: from ``started_at`` until just before ``ended_at``; None: it is still there."""

    id: str
    """The document's id; equal for the same placement, however often it is derived."""
    pod: PodRef
    node: str
    started_at: Moment
    """When it was bound; where no bind is known, since when it was scheduled, else when it was first seen there."""
    ended_at: Moment | None = None
    ended_by: str = ""
    """``Succeeded``, ``Failed``: the pod's phase. ``deleted``: it is gone. ``replaced``: another pod of its name was
    bound or seen since. ``moved``: it was bound or seen on another node since. Empty while it is there."""
    scheduler: str = ""
    """The scheduler that bound it; empty where no bind is known, and then so is ``attempt_id``."""
    attempt_id: str = ""
    phase: str = ""
    """As last observed."""
    allocations: list[DeviceAllocation] = Field(default_factory=list)
    """Devices, by container in the pod's order; empty for a pod without devices and where no bind is known."""

    def is_on(self, at: datetime) -> bool:
        """Was the pod there at that time?"""
        # Half open: where one pod ends in the instant in which the next begins, only the next one is there.
        return self.started_at <= at and (self.ended_at is None or at < self.ended_at)
