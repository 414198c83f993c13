"""The time of one pod on one node, and what the facts about it say: pure."""

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from engine.summaries.pod_facts import DELETED, BindFact, PodSighting, knowledge, knowledge_of_devices
from schemas.events import DeviceAllocation
from schemas.ids import microseconds


@dataclass(slots=True)
class PlacementInterval:
    """The facts about one pod on one node. ``end``: when its time there ended, and why."""

    uid: str
    node: str
    binds: list[BindFact] = field(default_factory=list)
    sights: list[PodSighting] = field(default_factory=list)
    end: tuple[datetime, str] | None = None
    before: list[PodSighting] = field(default_factory=list)
    """Ends of earlier pods with the same UID that were seen on no node: they decide which bind belongs to which pod."""
    again: str = ""
    """Separates it from an earlier pod with the same UID, or from one without that begins in the same instant."""

    @property
    def bind(self) -> BindFact | None:
        """The report of the bind that knows the devices, where several reported it."""
        return max(self.binds, key=lambda bind: (bool(bind.held), *knowledge(bind), bind.attempt_id), default=None)

    @property
    def started_at(self) -> datetime:
        return self.bound_at or min(sight.at for sight in self._here)

    @property
    def bound_at(self) -> datetime | None:
        """By the bind, else by what the cluster says; None where neither is known."""
        if bind := self.bind:
            return bind.at
        return min((sight.scheduled for sight in self._here if sight.scheduled), default=None)

    @property
    def running_at(self) -> datetime | None:
        return min((sight.running_at for sight in self._here if sight.running_at), default=None)

    @property
    def held(self) -> tuple[DeviceAllocation, ...]:
        """The devices that its bind took; where no bind or none of its devices is known, those that the pod names."""
        bind = self.bind
        if bind and bind.held:
            return bind.held
        return max((sight.held for sight in self._here), key=knowledge_of_devices, default=())

    @property
    def _here(self) -> list[PodSighting]:
        return [sight for sight in self.sights if sight.node == self.node]

    @property
    def phase(self) -> str:
        seen = [sight for sight in self.sights if sight.state != DELETED]
        return max(seen, key=lambda sight: (sight.at, sight.state)).state if seen else ""

    def id(self, cluster: str, pod: str) -> str:
        """The placement's id. Without a UID the bind identifies it, else its beginning."""
        bind = self.bind
        # The id must not depend on what is still unknown: a UID never changes, the start moves when a late bind
        # arrives.
        which = self.uid or (bind.attempt_id if bind else str(microseconds(self.started_at)))
        # With the cluster: files of a cluster (``--cluster``) are used twice, with all UIDs in them.
        parts = (cluster, "uid" if self.uid else "name", "" if self.uid else pod, which, self.again, self.node)
        source = "\x1f".join(parts)
        return blake2b(source.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def order(part: PlacementInterval) -> tuple[datetime, str, str]:
    return part.started_at, part.uid, part.node
