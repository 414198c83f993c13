"""Identity of one scheduling attempt, and of the scheduler that publishes it."""

from datetime import datetime
from typing import Any, NamedTuple

from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import PodRef
from schemas.ids import derive_attempt_id


class Identity(NamedTuple):
    """Name of a scheduler that is unique everywhere: two clusters may both have a ``hami-scheduler``."""

    cluster: str
    scheduler: str
    """Name in the pods' ``spec.schedulerName``."""


class AttemptRef(NamedTuple):
    """Attempt to schedule one pod, as every event about it names it."""

    id: str
    pod: PodRef
    identity: Identity
    started_at: datetime
    trace: Trace = NO_TRACE
    """Trace that its records get; empty where nobody traces it."""

    @classmethod
    def start(cls, identity: Identity, pod: PodRef, started_at: datetime) -> "AttemptRef":
        """Start an attempt now; its id is derived from the arguments."""
        return cls(
            derive_attempt_id(identity.cluster, identity.scheduler, pod.uid, started_at), pod, identity, started_at
        )

    @property
    def common_fields(self) -> dict[str, Any]:
        """Fields that every event about the attempt has."""
        return {
            "cluster": self.identity.cluster,
            "attempt_id": self.id,
            "pod": self.pod,
            "scheduler": self.identity.scheduler,
            "started_at": self.started_at,
        }
