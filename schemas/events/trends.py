"""What happened in a minute, counted."""

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from schemas.events.base import TYPE_PREFIX, Count, Event, Moment, Words
from schemas.events.columns import Integers, check_lengths
from schemas.ids import microseconds


class TrendsCounted(Event):
    """The attempts that began in one minute, of the pods of one partition of the decisions: a row per combination.

    It is published again whenever there is more to count, always as a whole; the greatest ``version`` holds. A pod
    lies in one partition, so rows of several partitions add up.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "trends.counted.v1"

    started_at: Moment
    """Its beginning."""
    partition: Count
    version: Count
    """Grows with what is counted."""
    part: Count = 0
    parts: Annotated[int, Field(ge=1, strict=True)] = 1
    namespace: Words
    result: Words
    """``succeeded``, ``failed`` or ``pending``."""
    dimension: Words
    """``all``: the namespace's attempts with that result. ``reason``, ``pool``, ``model``: those with ``value``."""
    value: Words
    """The reason code, the node pool or the device model; empty for ``all``."""
    attempts: Integers
    pods: Integers
    """Distinct ones."""
    nodes: Integers
    """Node verdicts: for a reason the nodes refused for it. 0 for a model."""
    devices: Integers
    """Device verdicts: for a reason the devices refused for it. 0 for a pool."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        names = ("result", "dimension", "value", "attempts", "pods", "nodes", "devices")
        check_lengths({name: getattr(self, name) for name in names}, len(self.namespace))
        return self

    @property
    def id(self) -> str:
        return f"trends/{microseconds(self.started_at)}/{self.partition}/{self.version}/{self.part}"

    @property
    def key(self) -> str:
        # All rows of a minute and partition lie in one partition of this topic, so that versions arrive in order.
        return str(self.partition)

    @property
    def time(self) -> datetime:
        return self.started_at

    @property
    def source(self) -> str:
        return "/pipeline"
