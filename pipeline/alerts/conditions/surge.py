"""Kind ``surge``: a reason refuses attempts much more often than in the time before."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, to_timedelta
from pipeline.alerts.conditions.occurrences import TickCounter
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AlertChanged, PodMessage
from schemas.topics import MESSAGES


class SurgeRule(AlertRule):
    """A reason refuses many times as often as in the time before."""

    kind: Literal["surge"]
    factor: Annotated[float, Field(gt=1)] = 5
    window_minutes: Minutes = 10
    before_minutes: Minutes = 60
    at_least: Annotated[int, Field(ge=1)] = 20
    """Smallest number of attempts in the window."""

    def create_condition(self) -> "SurgeCondition":
        return SurgeCondition(self)


class SurgeCondition:
    """Counts of refusals by cluster, reason and tick."""

    def __init__(self, rule: SurgeRule) -> None:
        self._rule = rule
        self._window, self._before = to_timedelta(rule.window_minutes), to_timedelta(rule.before_minutes)
        self._refusals: defaultdict[tuple[str, str], TickCounter] = defaultdict(TickCounter)
        self._first_message_at: dict[str, datetime] = {}
        """Time of the first message by cluster."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {MESSAGES.name: self._window + self._before}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, PodMessage):
            first = self._first_message_at.get(event.cluster, event.reported_at)
            self._first_message_at[event.cluster] = min(first, event.reported_at)
            # The message about the whole attempt has no code; counting it would double every refusal.
            if event.severity == "Warning" and event.code:
                self._refusals[event.cluster, event.code].add(event.reported_at)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        start = now - self._window
        self._drop(start - self._before)
        for (cluster, reason), counter in sorted(self._refusals.items()):
            # Of a cluster whose messages begin here the rate before is too low, and every reason would seem to surge.
            if self._first_message_at[cluster] > start - self._before:
                continue
            count = counter.count_between(start, now)
            count_before = counter.count_between(start - self._before, start)
            rate, rate_before = count / self._rule.window_minutes, count_before / self._rule.before_minutes
            if count >= self._rule.at_least and rate >= self._rule.factor * rate_before:
                summary = InBothLanguages(
                    en=(
                        f"{reason} refuses {rate:.1f} attempts a minute, {rate_before:.1f} in the "
                        f"{self._rule.before_minutes:g} minutes before: see which nodes and pods it is about"
                    ),
                    zh=(
                        f"{reason} 每分钟拒绝 {rate:.1f} 次尝试，此前 {self._rule.before_minutes:g} 分钟内为 "
                        f"{rate_before:.1f} 次：查看涉及哪些节点和 Pod"
                    ),
                )
                numbers = {"attempts_per_minute": rate, "attempts_per_minute_before": rate_before}
                labels = {"cluster": cluster, "reason": reason}
                yield Firing(labels, summary, numbers, partial(links.link_reason, cluster, reason, start, now))

    def restore(self, alert: AlertChanged) -> None:
        # A surge may have followed an hour without any message: what is read again does not show that it had an hour
        # before it.
        if cluster := alert.labels.get("cluster"):
            self._first_message_at[cluster] = alert.started_at - self._window - self._before

    def _drop(self, until: datetime) -> None:
        for key, counter in list(self._refusals.items()):
            counter.drop(until)
            if not counter:
                del self._refusals[key]
