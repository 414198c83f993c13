"""What conditions are evaluated on: a few event types as they are, and three facts that only Kafka knows."""

from datetime import datetime
from typing import NamedTuple, TypeAlias

from schemas.events import BindConcluded, DetailDropped, FindingReported, MessageEmitted, NodeChecked, PodObserved


class SchedulerActivity(NamedTuple):
    """A scheduler published something, or something was read of it: it is alive."""

    cluster: str
    scheduler: str
    at: datetime
    reader: str = ""
    """As in ``AttemptEvent.reader``."""


class DecisionArrival(NamedTuple):
    """A decision reached Kafka, published by the scheduler that made it (not read from a log)."""

    cluster: str
    scheduler: str
    at: datetime
    delay_seconds: float
    """From the decision to its arrival: how long it waited in the scheduler's spool."""


class DeadLettered(NamedTuple):
    """A record was written to the dead letters."""

    topic: str
    """The topic it was read from."""
    at: datetime
    cluster: str = ""
    """The cluster that the record's headers or its key name; empty where neither does."""


AlertInput: TypeAlias = (
    MessageEmitted
    | BindConcluded
    | DetailDropped
    | FindingReported
    | NodeChecked
    | PodObserved
    | SchedulerActivity
    | DecisionArrival
    | DeadLettered
)
