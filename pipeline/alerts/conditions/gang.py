"""Kind ``gang``: pods that start only together wait, and none of them has a node."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_minutes, to_timedelta
from pipeline.alerts.conditions.observed_waits import ObservedWaits
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import PodObserved
from schemas.topics import PODS


class GangRule(AlertRule):
    """Pods of a group that start only together wait: a member is missing, or fits nowhere."""

    kind: Literal["gang"]
    for_minutes: Minutes = 30
    forget_minutes: Minutes = 24 * 60
    """Time without an observation after which a pod no longer waits."""

    def create_condition(self) -> "GangCondition":
        return GangCondition(self)


class GangCondition(RebuiltCondition):
    """Waiting members of each group."""

    def __init__(self, rule: GangRule) -> None:
        self._for = to_timedelta(rule.for_minutes)
        self._waits = ObservedWaits(to_timedelta(rule.forget_minutes))

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {PODS.name: self._waits.forget}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, PodObserved) and event.description and event.description.pod_group:
            self._waits.observe(event, event.description.pod_group)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for pod_set, pods in self._waits.iterate_pod_sets(now):
            first = min(pods, key=lambda pod: (pod.since, pod.pod.name))
            # A queue that holds the members is a case of its own; a member with a node makes the group complete.
            is_held = all(pod.layer == "queue" for pod in pods)
            has_started = self._waits.went_on_at.get(pod_set, first.since) > first.since
            if is_held or has_started or now - first.since < self._for:
                continue
            waited = to_minutes(now - first.since)
            count = f"{len(pods)} pods" if len(pods) > 1 else "1 pod"
            summary = InBothLanguages(
                en=(
                    f"{count} of group {pod_set.name} in {pod_set.namespace} have waited for {waited:.0f} minutes, and "
                    "none has a node: the diagnosis of a pod names the missing members, or the member that fits nowhere"
                ),
                zh=(
                    f"{pod_set.namespace} 的组 {pod_set.name} 有 {len(pods)} 个 Pod 已等待 {waited:.0f} 分钟，"
                    "且没有一个获得节点：Pod 的诊断会指出缺少的成员，或放不下的成员"
                ),
            )
            labels = {"cluster": pod_set.cluster, "namespace": pod_set.namespace, "pod_group": pod_set.name}
            numbers = {"waiting_minutes": waited, "pods": float(len(pods))}
            yield Firing(labels, summary, numbers, partial(links.link_diagnosis, pod_set.cluster, first.pod))
