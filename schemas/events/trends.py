"""Contribution of an attempt to the counts of its minute, and the counts."""

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from ..ids import count_microseconds
from .base import TYPE_PREFIX, AttemptEvent, Event, Model
from .columns import Integers, check_lengths
from .field_types import Count, Moment, Words
from .summaries import Status


class Contribution(Model):
    """Contribution of one version of an attempt to the counts of its minute; each column has an entry per
    combination."""

    version: Count
    """The version of the summary that was counted."""
    status: Status
    dimension: Words
    """Dimensions, as in ``TrendsCounted``."""
    value: Words
    nodes: Integers
    devices: Integers

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        check_lengths({name: getattr(self, name) for name in ("value", "nodes", "devices")}, len(self.dimension))
        return self


class AttemptCounted(AttemptEvent):
    """Contribution of an attempt to the counts of the minute in which it began, published with each version of its
    summary.

    It lies in the partition of the same number as the decisions that it was made from.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "attempt.counted.v1"

    recorded_at: Moment
    """Kafka's time of the decision that completed this version: equal however often that is read again."""
    adds: Contribution
    replaces: Contribution | None = None
    """Contribution of the version before it, which no longer counts; null for the first version."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/counted/{self.adds.version}"

    @property
    def source(self) -> str:
        return "/pipeline"


class TrendsCounted(Event):
    """The attempts that began in one minute, of the pods of one partition of the decisions: a row per combination.

    It is published again whenever there is more to count, always as a whole; the greatest ``version`` holds. A pod
    lies in one partition, so rows of several partitions add up, and so do rows of several ``recorded_at``: a number
    below 0 takes back what an earlier one counted of an attempt of which more became known.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "trends.counted.v1"

    started_at: Moment
    """Its beginning."""
    partition: Count
    recorded_at: Moment
    """The beginning of the ten minutes in which Kafka took the decisions that are counted here."""
    version: Count
    """Grows with what is counted."""
    part: Count = 0
    parts: Annotated[int, Field(ge=1, strict=True)] = 1
    namespace: Words
    result: Words
    """``succeeded``, ``failed`` or ``pending``."""
    dimension: Words
    """``all``: the namespace's attempts with that result. ``reason``, ``pool``, ``model``, ``workload``, ``queue``:
    those with ``value``. ``obstacle``: those that it decided; an attempt has one at most."""
    value: Words
    """The code of the reason or the obstacle, the node pool, the device model, the workload or the queue; empty for
    ``all``."""
    attempts: Integers
    pods: Integers
    """Distinct ones; a pod that several ``recorded_at`` count is in each of them."""
    nodes: Integers
    """Node verdicts: for a reason the nodes refused for it, or to which the bind failed. 0 for a model."""
    devices: Integers
    """Device verdicts: for a reason the devices refused for it. 0 for a pool, and for the reason of a failed bind."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        names = ("result", "dimension", "value", "attempts", "pods", "nodes", "devices")
        check_lengths({name: getattr(self, name) for name in names}, len(self.namespace))
        return self

    @property
    def id(self) -> str:
        minute, recorded = count_microseconds(self.started_at), count_microseconds(self.recorded_at)
        return f"{self.cluster}/trends/{minute}/{self.partition}/{recorded}/{self.version}/{self.part}"

    @property
    def key(self) -> str:
        # All rows of a minute and partition lie in one partition of this topic, so that versions arrive in order.
        return f"{self.cluster}/{self.partition}"

    @property
    def time(self) -> datetime:
        return self.started_at

    @property
    def source(self) -> str:
        return "/pipeline"
