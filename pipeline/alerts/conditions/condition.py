"""What every kind of rule has: the settings a file may give, and the condition that is made from them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from pipeline.alerts.firing import Firing
from pipeline.alerts.inputs import AlertInput
from schemas.events import AlertChanged

Minutes = Annotated[float, Field(gt=0, le=7 * 24 * 60)]
"""At most a week: topics keep no more, and a condition has to be rebuilt from them after a restart."""


class RuleCondition(Protocol):
    """A fold over the inputs. Time is an argument, so that reading the same records again gives the same alerts."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        """Topic to how far back it must be read for the condition to be as if it had read all of it."""

    def observe(self, event: AlertInput) -> None:
        """Take the next input; inputs come in the order of the timeline."""

    def firing(self, now: datetime) -> Iterator[Firing]:
        """The cases that the condition holds for now."""

    def restore(self, alert: AlertChanged) -> None:
        """Take over an alert that fires since before the lookback."""


class AlertRule(BaseModel, ABC):
    """The settings of a rule."""

    # A misspelt setting would leave its default in force without a word.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
    severity: Literal["info", "warning", "critical"] = "warning"

    @abstractmethod
    def condition(self) -> RuleCondition:
        """A new condition that has observed nothing yet."""


class RebuiltCondition:
    """For conditions whose lookback covers all they need: what is read again rebuilds them completely."""

    def restore(self, alert: AlertChanged) -> None:
        del alert


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def in_minutes(duration: timedelta) -> float:
    return duration / timedelta(minutes=1)
