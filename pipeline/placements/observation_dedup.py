"""Distinction of observations that are a change from repetitions of the one before. Pure.

The one before is about the same pod, workload or scheduler, or of the same node by the same scheduler.

What has to be remembered is in the index as well: kept in memory or loaded again, the answer is the same.
"""

from bisect import insort
from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

from schemas.codec.records import encode_value
from schemas.documents.observations import Observed
from schemas.events import NodeRegistered, ObjectProblem, PodObserved, SchedulerObserved, WorkloadObserved

REMEMBERED: Final = 8
"""Number of changes kept of one stream. Observations arrive nearly in order, so the one before is among the latest."""


class ObservationDigest(NamedTuple):
    """Field order is sort order: by time, then by id."""

    observed_at: datetime
    id: str
    digest: str


def digest_of(event: Observed) -> str:
    """Digest the observed state; equal for two observations of the same state, whenever they were made."""
    state = {name: value for name, value in event.__dict__.items() if name != "observed_at"}
    if isinstance(event, PodObserved):
        # A problem is reported again and again; only what is wrong is state.
        state["problems"] = [_without_time(problem) for problem in event.problems]
    if isinstance(event, WorkloadObserved):
        state["problem"] = _without_time(event.problem)
    if isinstance(event, SchedulerObserved):
        # Every start of a scheduler is another instance with, mostly, the settings of the one before.
        del state["instance"]
    if isinstance(event, NodeRegistered):
        # A device plugin renews the time in its handshake every 30 seconds; only the step before the time is state.
        state["handshake"] = event.handshake.partition("_")[0].partition(" ")[0]
    return blake2b(encode_value(state), digest_size=16).hexdigest()


def _without_time(problem: ObjectProblem) -> tuple[str, str, str]:
    return problem.reason, problem.message, problem.reported_by


class RecentObservations:
    """The latest observations of one stream that were changes, by time."""

    def __init__(self) -> None:
        self._changes: list[ObservationDigest] = []

    def remember(self, observation: ObservationDigest) -> None:
        """Take an observation that is in the index, without asking whether it is a change."""
        if observation not in self._changes:
            insort(self._changes, observation)
            del self._changes[:-REMEMBERED]

    def add(self, observation: ObservationDigest) -> bool:
        """Remember the observation if it is a change from the one before it; return whether it is."""
        # Of two with one id the index keeps the first, so that the second is not there after a restart.
        if any(change.id == observation.id for change in self._changes):
            return False
        # Compared with the one before it in time, not with the one read last: observations may arrive late.
        before = [change for change in self._changes if change.observed_at <= observation.observed_at]
        if before and before[-1].digest == observation.digest:
            return False
        self.remember(observation)
        return True
