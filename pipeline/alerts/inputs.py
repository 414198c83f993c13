"""What the conditions look at: a few events as they are, and three facts that only Kafka knows."""

from datetime import datetime
from typing import NamedTuple, TypeAlias

from schemas.events import BindConcluded, DetailDropped, FindingReported, MessageEmitted, NodeChecked, PodObserved


class Heard(NamedTuple):
    """A scheduler gave a sign of life."""

    scheduler: str
    at: datetime


class Arrived(NamedTuple):
    """A decision that its scheduler told itself reached Kafka."""

    scheduler: str
    at: datetime
    behind_seconds: float
    """After it was made."""


class SetAside(NamedTuple):
    """A record went to the dead letters."""

    topic: str
    """That it was read from."""
    at: datetime


Seen: TypeAlias = (
    MessageEmitted
    | BindConcluded
    | DetailDropped
    | FindingReported
    | NodeChecked
    | PodObserved
    | Heard
    | Arrived
    | SetAside
)
