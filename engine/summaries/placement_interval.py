"""Time of one pod on one node, and the facts about it: pure."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from engine.summaries.pod_facts import DELETED, BindFact, PodSighting, rank_bind, rank_devices
from schemas.events import DeviceAllocation
from schemas.ids import count_microseconds


@dataclass(slots=True)
class PlacementInterval:
    """Facts about one pod on one node. ``end``: time and cause of the end of its time there."""

    uid: str
    node: str
    binds: list[BindFact] = field(default_factory=list)
    sights: list[PodSighting] = field(default_factory=list)
    end: tuple[datetime, str] | None = None
    earlier_ends: list[PodSighting] = field(default_factory=list)
    """Ends of earlier pods with the same UID that were seen on no node: they decide which bind belongs to which pod."""
    generation: str = ""
    """Mark that separates it from an earlier pod with the same UID, or, without a UID, from one that begins in the same
    instant."""

    @property
    def bind(self) -> BindFact | None:
        """The bind report that names the devices, if several reported the bind."""
        return max(self.binds, key=lambda bind: (bool(bind.held), *rank_bind(bind), bind.attempt_id), default=None)

    @property
    def started_at(self) -> datetime:
        return self.bound_at or min(sight.time for sight in self._sights_here)

    @property
    def bound_at(self) -> datetime | None:
        """Time of the bind, else the cluster's time; None if neither is reported."""
        if bind := self.bind:
            return bind.time
        return min((sight.scheduled for sight in self._sights_here if sight.scheduled), default=None)

    @property
    def running_at(self) -> datetime | None:
        return min((sight.running_at for sight in self._sights_here if sight.running_at), default=None)

    @property
    def held(self) -> tuple[DeviceAllocation, ...]:
        """Devices that the bind took; if no bind or none of its devices is reported, those that the pod names."""
        bind = self.bind
        if bind and bind.held:
            return bind.held
        return max((sight.held for sight in self._sights_here), key=rank_devices, default=())

    @property
    def _sights_here(self) -> list[PodSighting]:
        return [sight for sight in self.sights if sight.node == self.node]

    @property
    def phase(self) -> str:
        seen = [sight for sight in self.sights if sight.state != DELETED]
        return max(seen, key=lambda sight: (sight.time, sight.state)).state if seen else ""

    def derive_id(self, cluster: str, pod: str) -> str:
        """Derive the placement's id. Without a UID the bind identifies it, else its beginning."""
        bind = self.bind
        # The id must not depend on facts that may still arrive: a UID never changes, a late bind moves the start.
        which = self.uid or (bind.attempt_id if bind else str(count_microseconds(self.started_at)))
        # The cluster is a part because files of a cluster (``--cluster``) are used twice, with all UIDs in them.
        parts = (cluster, "uid" if self.uid else "name", "" if self.uid else pod, which, self.generation, self.node)
        source = "\x1f".join(parts)
        return blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def rank_by_start(part: PlacementInterval) -> tuple[datetime, str, str]:
    return part.started_at, part.uid, part.node
