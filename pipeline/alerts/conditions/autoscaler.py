"""Kind ``autoscaler``: pods wait for a node, and the autoscaler reports that it can add none for them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_minutes, to_timedelta
from pipeline.alerts.conditions.occurrences import Streak
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import PodObserved, PodRef
from schemas.topics import PODS

AUTOSCALERS = ("cluster-autoscaler", "karpenter")
_ENDED = ("Succeeded", "Failed")


class AutoscalerRule(AlertRule):
    """Pods wait, and the autoscaler can add no node for them."""

    kind: Literal["autoscaler"]
    for_minutes: Minutes = 30
    at_least: Annotated[int, Field(ge=1)] = 1
    """Smallest number of such pods."""
    forget_minutes: Minutes = 30
    """Time without a report after which a pod no longer waits: autoscalers repeat theirs within minutes."""

    def create_condition(self) -> "AutoscalerCondition":
        return AutoscalerCondition(self)


class AutoscalerCondition(RebuiltCondition):
    """Reports of autoscalers about each pod that has no node yet."""

    def __init__(self, rule: AutoscalerRule) -> None:
        self._rule, self._for = rule, to_timedelta(rule.for_minutes)
        self._forget = to_timedelta(rule.forget_minutes)
        self._reports: dict[tuple[str, str], tuple[PodRef, str, Streak]] = {}
        """By cluster and key of the pod: the pod, the autoscaler's latest words, and its reports."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {PODS.name: self._for + self._forget}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, PodObserved):
            return
        key = event.cluster, event.key
        if event.deleted or event.node or event.phase in _ENDED:
            self._reports.pop(key, None)
        for problem in event.problems:
            if problem.reported_by in AUTOSCALERS and not event.node:
                streak = self._reports[key][2] if key in self._reports else Streak.start(problem.at)
                streak.extend(problem.at)
                self._reports[key] = event.pod, problem.message, streak

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        self._reports = {
            key: report for key, report in self._reports.items() if now - report[2].latest_at <= self._forget
        }
        for cluster in sorted({cluster for cluster, _ in self._reports}):
            reports = [report for key, report in self._reports.items() if key[0] == cluster]
            long = [report for report in reports if now - report[2].started_at >= self._for]
            if not long or len(long) < self._rule.at_least:
                continue
            pod, words, streak = min(long, key=lambda report: (report[2].started_at, str(report[0])))
            waited = to_minutes(now - streak.started_at)
            count = f"{len(long)} pods, such as {pod}," if len(long) > 1 else f"{pod}"
            summary = InBothLanguages(
                en=f"the autoscaler has had no node for {count} for {waited:.0f} minutes: {words}",
                zh=(
                    f"自动扩容已有 {waited:.0f} 分钟无法为 {pod}"
                    f"{f' 等 {len(long)} 个 Pod' if len(long) > 1 else ''} 提供节点：{words}"
                ),
            )
            numbers = {"waiting_minutes": waited, "pods": float(len(long))}
            yield Firing({"cluster": cluster}, summary, numbers, partial(links.link_diagnosis, cluster, pod))
