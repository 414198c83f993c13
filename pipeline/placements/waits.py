"""How long pods waited, each measured once. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pipeline.placements.subjects import PodState
from schemas.placements import PodPlacement

MEASURED_WITHIN: Final = timedelta(hours=1)
"""Waits that ended earlier are not measured: of pods from before the installation, and what is read late."""


class Wait(NamedTuple):
    """How long a pod waited, for the histogram of that ``kind``: ``placement`` or ``start``."""

    kind: str
    cluster: str
    namespace: str
    seconds: float


class Waits:
    """The waits that have become known since they were taken last."""

    def __init__(self) -> None:
        self._waits: list[Wait] = []

    def measure(self, pod: PodState, placements: Iterable[PodPlacement], now: datetime) -> None:
        """Note the waits of the pod that were not measured yet."""
        for placement in placements:
            for kind, at, seconds in (
                ("placement", placement.bound_at, placement.placement_seconds),
                ("start", placement.running_at, placement.start_seconds),
            ):
                if at is None or seconds is None or (placement.id, kind) in pod.measured:
                    continue
                pod.measured.add((placement.id, kind))
                if now - at <= MEASURED_WITHIN:
                    self._waits.append(Wait(kind, placement.cluster, placement.pod.namespace, seconds))

    def take(self) -> list[Wait]:
        """Each wait once."""
        waits, self._waits = self._waits, []
        return waits
