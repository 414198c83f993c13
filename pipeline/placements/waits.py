"""Waiting times of pods, each measured once. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pipeline.placements.subjects import PodState
from schemas.placements import PodPlacement

MEASURED_WITHIN: Final = timedelta(hours=1)
"""Age up to which a wait is measured. Older ones are of pods from before the installation, or are read late."""


class Wait(NamedTuple):
    """Waiting time of a pod, for the histogram of its ``kind``: ``placement`` or ``start``."""

    kind: str
    cluster: str
    namespace: str
    seconds: float


class Waits:
    """Waits that were measured since they were taken last."""

    def __init__(self) -> None:
        self._waits: list[Wait] = []

    def measure(self, pod: PodState, placements: Iterable[PodPlacement], now: datetime) -> None:
        """Note the waits of the pod that were not measured yet."""
        for placement in placements:
            for kind, ended_at, seconds in (
                ("placement", placement.bound_at, placement.placement_seconds),
                ("start", placement.running_at, placement.start_seconds),
            ):
                if ended_at is None or seconds is None or (placement.id, kind) in pod.measured:
                    continue
                pod.measured.add((placement.id, kind))
                if now - ended_at <= MEASURED_WITHIN:
                    self._waits.append(Wait(kind, placement.cluster, placement.pod.namespace, seconds))

    def take(self) -> list[Wait]:
        """Take the measured waits, each once."""
        waits, self._waits = self._waits, []
        return waits
