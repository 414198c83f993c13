"""Kind ``surge``: a reason refuses attempts much more often than in the time before."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Minutes, RebuiltCondition, minutes
from pipeline.alerts.firing import Firing
from pipeline.alerts.inputs import AlertInput
from pipeline.alerts.tick_counter import TickCounter
from schemas.events import MessageEmitted
from schemas.topics import MESSAGES


class SurgeRule(AlertRule):
    """A reason refuses many times as often as in the time before."""

    kind: Literal["surge"]
    factor: Annotated[float, Field(gt=1)] = 5
    window_minutes: Minutes = 10
    before_minutes: Minutes = 60
    at_least: Annotated[int, Field(ge=1)] = 20
    """Attempts in the window."""

    def condition(self) -> "SurgeCondition":
        return SurgeCondition(self)


class SurgeCondition(RebuiltCondition):
    """Counts refusals by reason and tick."""

    def __init__(self, rule: SurgeRule) -> None:
        self._rule = rule
        self._window, self._before = minutes(rule.window_minutes), minutes(rule.before_minutes)
        self._refusals: defaultdict[str, TickCounter] = defaultdict(TickCounter)
        self._first_message_at: datetime | None = None

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {MESSAGES.name: self._window + self._before}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, MessageEmitted):
            self._first_message_at = min(self._first_message_at or event.reported_at, event.reported_at)
            # The message about the whole attempt has no code; counting it would double every refusal.
            if event.severity == "Warning" and event.code:
                self._refusals[event.code].add(event.reported_at)

    def firing(self, now: datetime) -> Iterator[Firing]:
        start = now - self._window
        self._drop(start - self._before)
        # On a young topic the rate before is too low, and every reason would seem to surge.
        if self._first_message_at is None or self._first_message_at > start - self._before:
            return
        for reason, counter in sorted(self._refusals.items()):
            count = counter.between(start, now)
            count_before = counter.between(start - self._before, start)
            rate, rate_before = count / self._rule.window_minutes, count_before / self._rule.before_minutes
            if count >= self._rule.at_least and rate >= self._rule.factor * rate_before:
                summary = (
                    f"{reason} refuses {rate:.1f} attempts a minute, {rate_before:.1f} in the "
                    f"{self._rule.before_minutes:g} minutes before: see which nodes and pods it is about"
                )
                numbers = {"attempts_per_minute": rate, "attempts_per_minute_before": rate_before}
                yield Firing({"reason": reason}, summary, numbers, partial(links.of_reason, reason, start, now))

    def _drop(self, until: datetime) -> None:
        for reason, counter in list(self._refusals.items()):
            counter.drop(until)
            if not counter:
                del self._refusals[reason]
