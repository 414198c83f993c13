"""Findings: decisions that contradict the state of the cluster, noticed while a decision was made or read."""

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from ..ids import count_microseconds
from .base import TYPE_PREFIX, AttemptEvent
from .field_types import Integer, Moment


class FindingReported(AttemptEvent):
    """A placement that relied on what was not there, or on numbers that did not hold, with the numbers that prove it.

    It is published before the attempt is concluded.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "finding.reported.v1"

    finding: str
    """``ReleasingMemoryCounted``: the device fits only with memory that other pods have not released yet.
    ``MemoryChanged``: the device's numbers changed between judging and allocation. ``MemoryReturned``: a later session
    of the scheduler counts memory as free that an earlier one gave to a pod. ``Imbalance``: the judged devices
    and the published ones do not add up. ``Overcommitted``: more of the device was allocated than it had left.
    ``BoundElsewhere``, ``BoundWithoutChoice``: the bind is not what the filter decided. ``BoundNowhere``: a bind was
    reported and the cluster does not show it. ``BindUnreported``: the cluster shows a bind that no scheduler reported.
    ``VerdictsDiffer``: verdicts that a reader worked out keep differing from the scheduler's counts.
    ``StateMissing``: the verdicts refer to states of nodes that were lost.
    ``OutsidePool``: the node is in no pool that the namespace may use. ``StaleHandshake``, ``UnusableRegistration``:
    the node's handshake or registration was in that state when the node was chosen."""
    found_at: Moment
    node: str
    device: str = ""
    """The device, as its scheduler names it; empty for the whole node."""
    numbers: dict[str, Integer] = Field(default_factory=dict)
    """Numbers that prove the finding, by name with the unit: ``memory_releasing_mib``, ``memory_available_mib``, …"""
    evidence: list[str] = Field(default_factory=list)
    """The lines that say so, word for word, in the order they were written; cut where they are very long. Where events
    say so, their ids and what they say."""
    evidence_pods: list[str] = Field(default_factory=list)
    """The pod that each line of ``evidence`` is about, as NAMESPACE/NAME; empty where lines may be about any pod, as
    those of a log."""

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/finding/{self.finding}/{self.node}/{self.device}/{count_microseconds(self.found_at)}"

    @property
    def time(self) -> datetime:
        return self.found_at
