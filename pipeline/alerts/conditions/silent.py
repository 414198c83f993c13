"""Kind ``silent``: a scheduler that has pods waiting publishes nothing any more.

A scheduler that publishes is judged only by its own records: when it has died, kube-scheduler still reports in
Kubernetes events that its pods do not fit, and a reader of these events publishes that under the scheduler's name.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal, NamedTuple

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, to_minutes, to_timedelta
from pipeline.alerts.inputs import AlertInput, SchedulerActivity
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AlertChanged, PodMessage, PodObserved
from schemas.topics import DECISIONS, MESSAGES, NODES, PODS

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_RETRY_INTERVAL: Final = to_timedelta(10)
"""kube-scheduler retries a waiting pod at least every five minutes; twice that leaves time for a slow cycle."""
_WAITING_FOR: Final = to_timedelta(20)
"""A pod that was last refused this long before the scheduler's last sign of life no longer waits."""
_PUBLISHES: Final = "publishes"
"""A number of the alert: 1 if the scheduler has published records itself, 0 if all were read elsewhere."""
_UNKNOWN_POD: Final = ""
"""Stands for the pods that waited when a restored alert began; which ones they were is not known."""


class SilentRule(AlertRule):
    """A scheduler that has pods waiting publishes nothing any more."""

    kind: Literal["silent"]
    for_minutes: Minutes = 10
    forget_minutes: Minutes = 24 * 60
    """Silence after which a scheduler counts as removed."""

    def create_condition(self) -> "SilentCondition":
        return SilentCondition(self)


class _Scheduler(NamedTuple):
    cluster: str
    name: str


class SilentCondition:
    """Last sign of life of each scheduler of a cluster, and the pods that waited then."""

    def __init__(self, rule: SilentRule) -> None:
        self._for, self._forget = to_timedelta(rule.for_minutes), to_timedelta(rule.forget_minutes)
        self._active_at: dict[_Scheduler, datetime] = {}
        """Last sign of life, by the scheduler's own records, or by records of readers if it has none."""
        self._publishing: set[_Scheduler] = set()
        """Schedulers with records of their own."""
        self._waiting: defaultdict[_Scheduler, dict[str, datetime]] = defaultdict(dict)
        """Pods that wait, each with its latest refusal, by scheduler."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return dict.fromkeys((DECISIONS.name, PODS.name, NODES.name, MESSAGES.name), self._for + _RETRY_INTERVAL)

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, SchedulerActivity):
            self._observe_activity(_Scheduler(event.cluster, event.scheduler), event)
        elif isinstance(event, PodMessage):
            waiting = self._waiting[_Scheduler(event.cluster, event.scheduler)]
            if event.severity == "Warning":
                waiting[str(event.pod)] = event.reported_at
            else:
                waiting.pop(str(event.pod), None)
        elif isinstance(event, PodObserved) and (event.node or event.phase in _ENDED):
            # Any scheduler may have placed it.
            for scheduler, waiting in self._waiting.items():
                if scheduler.cluster == event.cluster:
                    waiting.pop(str(event.pod), None)

    def _observe_activity(self, scheduler: _Scheduler, activity: SchedulerActivity) -> None:
        if activity.reader and scheduler in self._publishing:
            return
        if not activity.reader and scheduler not in self._publishing:
            self._publishing.add(scheduler)
            self._active_at.pop(scheduler, None)
        self._active_at[scheduler] = max(activity.received_at, self._active_at.get(scheduler, activity.received_at))
        self._waiting[scheduler].pop(_UNKNOWN_POD, None)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for scheduler, active_at in sorted(self._active_at.items()):
            silence, waiting = now - active_at, self._waiting[scheduler]
            # No message reports that a waiting pod was deleted; only its refusals stop.
            for pod in [pod for pod, refused_at in waiting.items() if active_at - refused_at > _WAITING_FOR]:
                del waiting[pod]
            if silence > self._forget:
                del self._active_at[scheduler]
                self._publishing.discard(scheduler)
            elif silence >= self._for and waiting:
                silent_minutes = to_minutes(silence)
                summary = InBothLanguages(
                    en=(
                        f"{scheduler.name} has published nothing for {silent_minutes:.0f} minutes while pods wait "
                        f"({len(waiting)}): see whether it runs, leads and reaches Kafka (/readyz)"
                    ),
                    zh=(
                        f"{scheduler.name} 已有 {silent_minutes:.0f} 分钟没有发布任何内容，"
                        f"而 {len(waiting)} 个 Pod 在等待："
                        "查看它是否运行、是否为领导者、能否连接 Kafka（/readyz）"
                    ),
                )
                numbers = {"silent_minutes": silent_minutes, "waiting_pods": float(len(waiting))}
                # For a process that continues from the alert.
                numbers[_PUBLISHES] = float(scheduler in self._publishing)
                labels = {"cluster": scheduler.cluster, "scheduler": scheduler.name}
                yield Firing(labels, summary, numbers, partial(links.link_scheduler, *scheduler))

    def restore(self, alert: AlertChanged) -> None:
        # A scheduler that is silent has no records in the lookback: only the alert shows that pods wait for it.
        if not alert.labels.keys() >= {"cluster", "scheduler"}:
            return
        scheduler = _Scheduler(alert.labels["cluster"], alert.labels["scheduler"])
        if scheduler not in self._active_at:
            active_at = alert.started_at - self._for
            self._active_at[scheduler] = active_at
            if alert.numbers.get(_PUBLISHES):
                self._publishing.add(scheduler)
            self._waiting[scheduler][_UNKNOWN_POD] = active_at
