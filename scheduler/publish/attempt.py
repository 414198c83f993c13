"""The identity of one scheduling attempt."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schemas.events import DEFAULT_CLUSTER, PodRef
from schemas.ids import attempt_id


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """One attempt to schedule one pod, as every event about it names it."""

    id: str
    pod: PodRef
    scheduler: str
    started_at: datetime

    @classmethod
    def of(cls, scheduler: str, pod: PodRef, started_at: datetime) -> "AttemptRef":
        """The attempt that starts now; its id is derived from the arguments."""
        return cls(attempt_id(DEFAULT_CLUSTER, scheduler, pod.uid, started_at), pod, scheduler, started_at)

    @property
    def common_fields(self) -> dict[str, Any]:
        """The fields that every event about the attempt has."""
        return {
            "cluster": DEFAULT_CLUSTER,
            "attempt_id": self.id,
            "pod": self.pod,
            "scheduler": self.scheduler,
            "started_at": self.started_at,
        }
