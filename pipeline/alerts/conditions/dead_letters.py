"""Kind ``dead-letters``: processes dead-letter records."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_timedelta
from pipeline.alerts.conditions.occurrences import WindowCount
from pipeline.alerts.inputs import AlertInput, DeadLettered
from schemas.answers.diagnosis import InBothLanguages
from schemas.topics import DEAD_LETTERS


class DeadLettersRule(AlertRule):
    """Records are being dead-lettered."""

    kind: Literal["dead-letters"]
    window_minutes: Minutes = 15
    at_least: Annotated[int, Field(ge=1)] = 1

    def create_condition(self) -> "DeadLettersCondition":
        return DeadLettersCondition(self)


class DeadLettersCondition(RebuiltCondition):
    """Counts dead letters by the topic they were read from, and by cluster where the record names one."""

    def __init__(self, rule: DeadLettersRule) -> None:
        self._rule = rule
        self._dead_letters = WindowCount(to_timedelta(rule.window_minutes))

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {DEAD_LETTERS.name: self._dead_letters.window}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, DeadLettered):
            # By topic: causes differ from record to record, and each would be an alert of its own.
            labels = {"cluster": event.cluster} if event.cluster else {}
            self._dead_letters.add(labels | {"topic": event.topic}, event.received_at)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for labels, count in self._dead_letters.list_reaching(self._rule.at_least, now):
            summary = InBothLanguages(
                en=(
                    f"{count} records of {labels['topic']} became dead letters in "
                    f"{self._rule.window_minutes:g} minutes: `schedulerlog pipeline dead-letters list` shows the causes"
                ),
                zh=(
                    f"{self._rule.window_minutes:g} 分钟内 {labels['topic']} 有 {count} 条记录成为死信："
                    "`schedulerlog pipeline dead-letters list` 显示原因"
                ),
            )
            yield Firing(labels, summary, {"count": float(count)}, links.link_dead_letters)
