"""Kind ``behind``: a scheduler's decisions reach Kafka late, so its spool grows."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_minutes, to_timedelta
from pipeline.alerts.conditions.occurrences import Streak
from pipeline.alerts.inputs import AlertInput, DecisionArrival
from schemas.answers.diagnosis import InBothLanguages
from schemas.topics import DECISIONS


class BehindRule(AlertRule):
    """A scheduler's decisions reach Kafka late: its spool grows."""

    kind: Literal["behind"]
    seconds: Annotated[float, Field(gt=0)] = 60
    """A decision that arrives this long after it was made is late."""
    for_minutes: Minutes = 2
    forget_minutes: Minutes = 30

    def create_condition(self) -> "BehindCondition":
        return BehindCondition(self)


class BehindCondition(RebuiltCondition):
    """Late decisions since the last one that was in time, per scheduler of a cluster."""

    def __init__(self, rule: BehindRule) -> None:
        self._rule, self._for, self._forget = rule, to_timedelta(rule.for_minutes), to_timedelta(rule.forget_minutes)
        self._late: dict[tuple[str, str], tuple[Streak, float]] = {}
        """Late decisions, and the delay of the latest one in seconds, by cluster and scheduler."""

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
        streak, _ = self._late.get(key, (Streak.start(event.received_at), 0.0))
        streak.extend(event.received_at)
        self._late[key] = streak, event.delay_seconds

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for (cluster, scheduler), (streak, delay) in sorted(self._late.items()):
            if now - streak.latest_at > self._forget:
                del self._late[cluster, scheduler]
            elif now - streak.started_at >= self._for:
                late = to_minutes(now - streak.started_at)
                summary = InBothLanguages(
                    en=(
                        f"decisions of {scheduler} have reached Kafka late for {late:.0f} minutes, now {delay:.0f} s "
                        "after they were made: its spool grows; see whether the brokers answer and replicas are in sync"
                    ),
                    zh=(
                        f"{scheduler} 的决策到达 Kafka 已延迟 {late:.0f} 分钟，现在延迟 {delay:.0f} 秒："
                        "其缓冲在增长；查看 broker 是否应答、副本是否同步"
                    ),
                )
                # A number and no label: it differs at each tick, and a label that changes makes another alert.
                numbers = {"behind_seconds": delay}
                labels = {"cluster": cluster, "scheduler": scheduler}
                yield Firing(labels, summary, numbers, partial(links.link_scheduler, cluster, scheduler))
