"""Kind ``queue``: pods, or workloads that have none yet, wait at a queue that lets nothing go."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_minutes, to_timedelta
from pipeline.alerts.conditions.observed_waits import ObservedWaits
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import PodObserved, PodRef, WorkloadObserved
from schemas.topics import PODS


class QueueRule(AlertRule):
    """Pods wait at a queue that lets none of its pods go."""

    kind: Literal["queue"]
    for_minutes: Minutes = 60
    forget_minutes: Minutes = 24 * 60
    """Time without an observation after which a pod no longer waits: a pod at a gate is observed once."""

    def create_condition(self) -> "QueueCondition":
        return QueueCondition(self)


class QueueCondition(RebuiltCondition):
    """Pods and workloads at the gates of each queue, and when one of them was last let go."""

    def __init__(self, rule: QueueRule) -> None:
        self._for = to_timedelta(rule.for_minutes)
        self._waits = ObservedWaits(to_timedelta(rule.forget_minutes))

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {PODS.name: self._waits.forget}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, PodObserved) and event.description and event.description.queue:
            self._waits.observe(event, event.description.queue)
        elif isinstance(event, WorkloadObserved) and event.queue:
            self._waits.observe_workload(event, event.queue)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for pod_set, pods in self._waits.iterate_pod_sets(now):
            held = [pod for pod in pods if pod.layer == "queue"]
            if not held:
                continue
            first = min(held, key=lambda pod: (pod.since, pod.pod.name))
            since = max(first.since, self._waits.went_on_at.get(pod_set, first.since))
            if now - since < self._for:
                continue
            blocked = to_minutes(now - since)
            subjects = "workloads wait" if any("/" in pod.pod.name for pod in held) else "pods wait"
            count = f"{len(held)} {subjects}" if len(held) > 1 else f"{first.pod.name} waits"
            summary = InBothLanguages(
                en=(
                    f"queue {pod_set.name} of {pod_set.namespace} has let no pod go for {blocked:.0f} minutes, "
                    f"and {count}: the diagnosis of a pod names what the queue lacks, or that it is stopped"
                ),
                zh=(
                    f"{pod_set.namespace} 的队列 {pod_set.name} 已有 {blocked:.0f} 分钟没有放行任何 Pod，"
                    f"其中 {len(held)} 个在等待：Pod 的诊断会说明队列缺少什么，或者队列已停止"
                ),
            )
            labels = {"cluster": pod_set.cluster, "namespace": pod_set.namespace, "queue": pod_set.name}
            numbers = {"blocked_minutes": blocked, "pods": float(len(held))}
            yield Firing(labels, summary, numbers, partial(_link, pod_set.cluster, first.pod))


def _link(cluster: str, pod: PodRef) -> dict[str, str]:
    """Link the diagnosis of a pod, or the list with a workload that has none."""
    return links.link_waiting(cluster, pod) if "/" in pod.name else links.link_diagnosis(cluster, pod)
