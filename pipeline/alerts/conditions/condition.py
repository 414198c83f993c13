"""Base of every kind of rule: the settings that a file may give, the condition made from them, and its cases."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AlertChanged, NodeProblem


@dataclass(frozen=True, slots=True)
class Firing:
    """One case in which the condition of a rule holds."""

    labels: dict[str, str]
    """Distinguish the cases of one rule; together with the rule's name they identify the alert."""
    summary: InBothLanguages
    numbers: dict[str, float]
    links: Callable[[], dict[str, str]]
    """Builds the alert's ``query``. Called only when an alert begins: a condition holds at every tick, and building
    URLs each time would be the most expensive part of a tick."""
    problems: list[NodeProblem] = field(default_factory=list)


Minutes = Annotated[float, Field(gt=0, le=7 * 24 * 60)]
"""Minutes up to a week: topics keep no more, and a condition has to be rebuilt from them after a restart."""


class RuleCondition(Protocol):
    """A fold over the inputs. Time is an argument, so that reading the same records again gives the same alerts."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        """Time by topic that must be read back for the condition to be as if it had read all of it."""

    def observe(self, event: AlertInput) -> None:
        """Take the next input; inputs come in the order of the timeline."""

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        """List the cases in which the condition holds now."""

    def restore(self, alert: AlertChanged) -> None:
        """Take over an alert that fires since before the lookback."""


class AlertRule(BaseModel, ABC):
    """The settings of a rule."""

    # A misspelt setting would leave its default in force without a word.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
    severity: Literal["info", "warning", "critical"] = "warning"

    @abstractmethod
    def create_condition(self) -> RuleCondition:
        """Create a condition that has observed nothing yet."""


class RebuiltCondition:
    """Base of conditions whose lookback covers all they need: the records that are read again rebuild them
    completely."""

    def restore(self, alert: AlertChanged) -> None:
        del alert


def to_timedelta(count: float) -> timedelta:
    return timedelta(minutes=count)


def to_minutes(duration: timedelta) -> float:
    return duration / timedelta(minutes=1)
