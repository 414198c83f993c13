"""Kind ``kubelet``: a node's kubelet refuses pods that a scheduler sent to it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_timedelta
from pipeline.alerts.conditions.occurrences import WindowCount
from pipeline.alerts.inputs import AlertInput
from schemas.events import PodObserved
from schemas.topics import PODS


class KubeletRule(AlertRule):
    """A node's kubelet refuses pods: its device plugin fails, or schedulers count other things than it does."""

    kind: Literal["kubelet"]
    window_minutes: Minutes = 15
    at_least: Annotated[int, Field(ge=1)] = 3
    """Smallest number of refused pods in the window."""

    def create_condition(self) -> "KubeletCondition":
        return KubeletCondition(self)


class KubeletCondition(RebuiltCondition):
    """Refused pods by node and reason."""

    def __init__(self, rule: KubeletRule) -> None:
        self._rule = rule
        self._refused = WindowCount(to_timedelta(rule.window_minutes))
        self._pods: dict[str, datetime] = {}
        """Pods that were counted, by their identity: a pod that stays is observed again."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {PODS.name: self._refused.window}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, PodObserved) or not _is_refused(event):
            return
        problem = event.problems[0]
        identity = f"{event.cluster}/{event.pod.uid or event.pod}"
        if identity not in self._pods:
            self._pods[identity] = problem.at
            self._refused.add({"cluster": event.cluster, "node": event.node, "reason": problem.reason}, problem.at)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        start = now - self._refused.window
        self._pods = {name: moment for name, moment in self._pods.items() if moment > start}
        for labels, count in self._refused.list_reaching(self._rule.at_least, now):
            cluster, node, reason = (labels[name] for name in ("cluster", "node", "reason"))
            summary = (
                f"the kubelet of {node} has refused {count} pods in {self._rule.window_minutes:g} minutes, {reason}: "
                "see its device plugin, and whether another scheduler places pods there"
            )
            query = partial(links.link_node, cluster, node, start, now)
            yield Firing(labels, summary, {"refused_pods": float(count)}, query)


def _is_refused(event: PodObserved) -> bool:
    """Tell whether the kubelet refused the pod before a container ran."""
    return event.phase == "Failed" and event.started_at is None and bool(event.node and event.problems)
