"""The identity of one scheduling attempt."""

from datetime import datetime
from typing import Any, NamedTuple

from engine.fit.events.identity import Identity
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import PodRef
from schemas.ids import derive_attempt_id


class AttemptRef(NamedTuple):
    """One attempt to schedule one pod, as every event about it names it."""

    id: str
    pod: PodRef
    by: Identity
    started_at: datetime
    trace: Trace = NO_TRACE
    """Which its records get; empty where nobody traces it."""

    @classmethod
    def of(cls, by: Identity, pod: PodRef, started_at: datetime) -> "AttemptRef":
        """The attempt that starts now; its id is derived from the arguments."""
        return cls(derive_attempt_id(by.cluster, by.scheduler, pod.uid, started_at), pod, by, started_at)

    @property
    def common_fields(self) -> dict[str, Any]:
        """The fields that every event about the attempt has."""
        return {
            "cluster": self.by.cluster,
            "attempt_id": self.id,
            "pod": self.pod,
            "scheduler": self.by.scheduler,
            "started_at": self.started_at,
        }
