"""Alerts: published when a rule's condition begins to hold and when it no longer does."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..ids import count_microseconds
from .base import TYPE_PREFIX, Event
from .field_types import Moment
from .observations import NodeProblem


def compute_fingerprint(rule: str, labels: Mapping[str, str]) -> str:
    # Sorted: equal labels must give one alert, in whatever order a rule names them.
    source = "\x1f".join((rule, *(f"{name}={value}" for name, value in sorted(labels.items()))))
    return blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class AlertChanged(Event):
    """A rule's condition began to hold for something, or holds no more.

    ``rule`` and ``labels`` name the alert; between a ``firing`` and its ``resolved`` it is published again once a day
    with the same id, so that the topic's retention never removes an alert that still fires.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "alert.changed.v1"

    rule: Annotated[str, Field(min_length=1)]
    """The rule's name."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Subject of the alert: ``cluster``, ``namespace`` and ``pod``, ``node``, ``reason``, ``scheduler``, …"""
    state: Literal["firing", "resolved"]
    severity: str
    """Severity from the rule: ``info``, ``warning``, ``critical``."""
    started_at: Moment
    """Time at which the alert began to fire."""
    changed_at: Moment
    """Time of the change to this state."""
    summary: str
    """For people, in one line."""
    summary_zh: str = ""
    """The summary in Chinese; empty in alerts of older versions."""
    numbers: dict[str, float] = Field(default_factory=dict)
    """Behind the decision, by name with the unit; in a ``resolved`` those of its beginning."""
    problems: list[NodeProblem] = Field(default_factory=list)
    """For an alert about a node: what its check found when the alert began, as in ``node checked``."""
    query: dict[str, str] = Field(default_factory=dict)
    """Evidence: ``api`` and ``opensearch`` are paths to GET there, ``attempt`` is the id of one of the API, ``command``
    is a command line."""

    @property
    def fingerprint(self) -> str:
        """Equal for every record of one alert, whatever its state: 16 hexadecimal digits."""
        return compute_fingerprint(self.rule, self.labels)

    @property
    def id(self) -> str:
        # By the beginning and not by the time of publishing: the daily repetition is the same event.
        return f"{self.fingerprint}/{self.state}/{count_microseconds(self.started_at)}"

    @property
    def key(self) -> str:
        return self.fingerprint

    @property
    def time(self) -> datetime:
        return self.changed_at

    @property
    def source(self) -> str:
        return "/pipeline/alerts"
