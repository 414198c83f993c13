"""A pod's time on a node, and the devices allocated to it there."""

from datetime import datetime

from pydantic import Field

from .events.base import Model, PodRef
from .events.device_models import DeviceAllocation
from .events.field_types import ClusterName, Moment, Words
from .events.pods import PodDescription
from .forecasts import StartForecast


class PodPlacement(Model):
    """A pod's time on a node: from ``started_at`` until just before ``ended_at``; None: it is still there."""

    id: str
    """The document's id; equal for the same placement, however often it is derived."""
    cluster: ClusterName
    pod: PodRef
    node: str
    started_at: Moment
    """Time of the bind; where no bind is known, of the scheduling, else of the first observation there."""
    ended_at: Moment | None = None
    ended_by: str = ""
    """``Succeeded``, ``Failed``: the pod's phase. ``deleted``: it is gone. ``replaced``: another pod of its name was
    bound or seen since. ``moved``: it was bound or seen on another node since. Empty while it is there."""
    scheduler: str = ""
    """The scheduler that bound it; empty where no bind is known, and then so is ``attempt_id``."""
    attempt_id: str = ""
    phase: str = ""
    """Phase at the last observation."""
    description: PodDescription | None = None
    """Origin of the pod; null where no source reports it."""
    first_judged_at: Moment | None = None
    """Start of the pod's first known attempt; null where no bind is known."""
    judged_at: Moment | None = None
    """Time at which the attempt that placed it had chosen the node."""
    bound_at: Moment | None = None
    running_at: Moment | None = None
    """Start of its first container; null where it is not known, and before."""
    waited_for: Words = Field(default_factory=list)
    """The reasons that its attempts before this placement failed for."""
    obstacle: str = ""
    """Code of the obstacle that kept it longest before this placement, which its wait is charged to; empty where no
    attempt failed or none has an obstacle."""
    layer_seconds: dict[str, float] = Field(default_factory=dict)
    """Seconds that the pod waited in each layer: ``queue``, ``gate``, ``nodes``, ``bind``, ``start``. They add up to
    ``start_seconds``, or to ``placement_seconds`` before it starts; empty where these are not known."""
    allocations: list[DeviceAllocation] = Field(default_factory=list)
    """Devices, by container in the pod's order: those of the bind, or where that is not known those that the pod
    itself names; empty for a pod without devices."""

    forecasts: list[StartForecast] = Field(default_factory=list)
    """Forecasts of its start with an interval, the earliest first."""

    @property
    def waiting_since(self) -> datetime | None:
        """Creation of the pod; where no source reports it, the start of its first known attempt."""
        made_at = self.description.created_at if self.description else None
        return made_at or self.first_judged_at

    @property
    def placement_seconds(self) -> float | None:
        """Seconds that the pod waited until it was bound; None where either time is not known."""
        return self._count_seconds_until(self.bound_at)

    @property
    def start_seconds(self) -> float | None:
        """Seconds that the pod waited until a container ran; None where either time is not known, and before."""
        return self._count_seconds_until(self.running_at)

    def _count_seconds_until(self, moment: datetime | None) -> float | None:
        since = self.waiting_since
        # Clocks differ: a wait is never negative.
        return max((moment - since).total_seconds(), 0.0) if since and moment else None

    def is_on(self, moment: datetime) -> bool:
        """Tell whether the pod was there at that time."""
        # Half open: where one pod ends in the instant in which the next begins, only the next one is there.
        return self.started_at <= moment and (self.ended_at is None or moment < self.ended_at)
