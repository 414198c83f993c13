"""Facts of a simulation beyond pod and cluster: time, policy, names, and notes for the reader of its answer."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import DEFAULT_CLUSTER

SCHEDULER: Final = "hami-scheduler"
"""Scheduler name shown for simulated attempts."""


class Note(NamedTuple):
    """A fact that is no obstacle, and that the reader has to know. code: for programs."""

    code: str
    text: InBothLanguages


@dataclass(frozen=True, slots=True)
class SimulationSetting:
    """Setting of a simulation."""

    now: datetime
    cluster_name: str = DEFAULT_CLUSTER
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    notes: tuple[Note, ...] = ()
    """Notes about the cluster."""

    @property
    def identity(self) -> Identity:
        """Identity of the scheduler that is simulated."""
        return Identity(self.cluster_name, SCHEDULER)
