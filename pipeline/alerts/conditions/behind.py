"""Kind ``behind``: a scheduler's decisions reach Kafka late, so its spool grows."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Minutes, RebuiltCondition, in_minutes, minutes
from pipeline.alerts.conditions.streak import Streak
from pipeline.alerts.firing import Firing
from pipeline.alerts.inputs import AlertInput, DecisionArrival
from schemas.topics import DECISIONS


class BehindRule(AlertRule):
    """A scheduler's decisions reach Kafka late: its spool grows."""

    kind: Literal["behind"]
    seconds: Annotated[float, Field(gt=0)] = 60
    """A decision that arrives this long after it was made is late."""
    for_minutes: Minutes = 2
    forget_minutes: Minutes = 30

    def condition(self) -> "BehindCondition":
        return BehindCondition(self)


class BehindCondition(RebuiltCondition):
    """Per scheduler of a cluster, the late decisions since the last one that was not late."""

    def __init__(self, rule: BehindRule) -> None:
        self._rule, self._for, self._forget = rule, minutes(rule.for_minutes), minutes(rule.forget_minutes)
        self._late: dict[tuple[str, str], tuple[Streak, float]] = {}
        """Cluster and scheduler to its late decisions and the delay of the latest one, in seconds."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {DECISIONS.name: self._for + self._forget}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, DecisionArrival):
            return
        key = event.cluster, event.scheduler
        # The spool is sent oldest first, so a decision in time shows that nothing older waits.
        if event.delay_seconds < self._rule.seconds:
            self._late.pop(key, None)
            return
        streak, _ = self._late.get(key, (Streak.starting(event.at), 0.0))
        streak.extend(event.at)
        self._late[key] = streak, event.delay_seconds

    def firing(self, now: datetime) -> Iterator[Firing]:
        for (cluster, scheduler), (streak, delay) in sorted(self._late.items()):
            if now - streak.latest_at > self._forget:
                del self._late[cluster, scheduler]
            elif now - streak.started_at >= self._for:
                late = in_minutes(now - streak.started_at)
                summary = (
                    f"decisions of {scheduler} have reached Kafka late for {late:.0f} minutes, now {delay:.0f} s after "
                    "they were made: its spool grows; see whether the brokers answer and replicas are in sync"
                )
                # A number and no label: it differs at each tick, and a label that changes makes another alert.
                numbers = {"behind_seconds": delay}
                labels = {"cluster": cluster, "scheduler": scheduler}
                yield Firing(labels, summary, numbers, partial(links.of_scheduler, cluster, scheduler))
