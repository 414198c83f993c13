"""Kind ``dropped``: a scheduler discarded device detail because its spool is full."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_timedelta
from pipeline.alerts.conditions.occurrences import WindowCount
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import DetailDropped
from schemas.topics import DECISIONS


class DroppedRule(AlertRule):
    """A scheduler has discarded device detail: its spool is full."""

    kind: Literal["dropped"]
    window_minutes: Minutes = 15
    at_least: Annotated[int, Field(ge=1)] = 1
    """Records of devices in the window."""

    def create_condition(self) -> "DroppedCondition":
        return DroppedCondition(self)


class DroppedCondition(RebuiltCondition):
    """Counts discarded device records by cluster and scheduler."""

    def __init__(self, rule: DroppedRule) -> None:
        self._rule = rule
        self._dropped = WindowCount(to_timedelta(rule.window_minutes))

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {DECISIONS.name: self._dropped.window}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, DetailDropped):
            # Counted by the records it reports: one event covers all that an attempt lost.
            labels = {"cluster": event.cluster, "scheduler": event.scheduler}
            self._dropped.add(labels, event.dropped_at, event.device_records)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for labels, count in self._dropped.list_reaching(self._rule.at_least, now):
            scheduler = labels["scheduler"]
            summary = InBothLanguages(
                en=(
                    f"the spool of {scheduler} is full: it discarded {count} device records in "
                    f"{self._rule.window_minutes:g} minutes; see why Kafka does not take them, "
                    "or raise --spool-max-size"
                ),
                zh=(
                    f"{scheduler} 的缓冲已满：{self._rule.window_minutes:g} 分钟内丢弃了 {count} 条设备记录；"
                    "查看 Kafka 为何不接收，或提高 --spool-max-size"
                ),
            )
            query = partial(links.link_scheduler, labels["cluster"], scheduler)
            yield Firing(labels, summary, {"count": float(count)}, query)
