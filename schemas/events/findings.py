"""What about a placement can't be right, as whoever read or made the decision noticed it."""

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from schemas.events.base import TYPE_PREFIX, AttemptEvent, Integer, Moment
from schemas.ids import microseconds


class FindingReported(AttemptEvent):
    """A placement that relied on what was not there, or on numbers that did not hold, with the numbers that prove it.

    It is told before the end of its attempt.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "finding.reported.v1"

    finding: str
    """``ReleasingMemoryCounted``: the device fits only with memory that others have not given back yet.
    ``MemoryChanged``: the device's numbers were others when it was taken than when it was judged.
    ``Imbalance``: what was judged and what is told do not add up. ``Overcommitted``: more of the device was taken than
    was left. ``BoundElsewhere``, ``BoundWithoutChoice``: the bind is not what the filter decided. ``BoundNowhere``: the
    cluster shows none. ``BindUntold``: nobody told the bind that it shows. ``OutsidePool``: the node is of no pool that
    the namespace may use. ``StaleHandshake``, ``UnusableRegistration``: so was the node's when it was chosen."""
    found_at: Moment
    node: str
    device: str = ""
    """The device, as its scheduler names it; empty for the whole node."""
    numbers: dict[str, Integer] = Field(default_factory=dict)
    """What proves it, by name with the unit: ``memory_releasing_mib``, ``memory_available_mib``, …"""
    evidence: list[str] = Field(default_factory=list)
    """The lines that say so, word for word, in the order they were written; cut where they are very long. Where events
    say so, their ids and what they say."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/finding/{self.finding}/{self.node}/{self.device}/{microseconds(self.found_at)}"

    @property
    def time(self) -> datetime:
        return self.found_at
