"""Kind ``kubelet``: a node's kubelet refuses pods that a scheduler sent to it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_timedelta
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import PodObserved
from schemas.topics import PODS


class KubeletRule(AlertRule):
    """A node's kubelet refuses pods: its device plugin fails, or schedulers count other things than it does."""

    kind: Literal["kubelet"]
    window_minutes: Minutes = 15
    at_least: Annotated[int, Field(ge=1)] = 3
    """Smallest number of refused pods: those of the window, and older ones that nobody has replaced or deleted."""
    forget_minutes: Minutes = 24 * 60
    """Time after which a refused pod that still exists no longer counts."""

    def create_condition(self) -> "KubeletCondition":
        return KubeletCondition(self)


@dataclass(slots=True)
class _Refusal:
    """Refusal of a pod. ``is_open``: neither replaced by its owner nor deleted."""

    cluster: str
    node: str
    reason: str
    time: datetime
    is_open: bool = True


class KubeletCondition(RebuiltCondition):
    """Refused pods by node and reason."""

    def __init__(self, rule: KubeletRule) -> None:
        self._rule = rule
        self._window, self._forget = to_timedelta(rule.window_minutes), to_timedelta(rule.forget_minutes)
        self._refusals: dict[str, _Refusal] = {}
        """By the identity of the pod: one that stays is observed again."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {PODS.name: max(self._window, self._forget)}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, PodObserved):
            return
        identity = f"{event.cluster}/{event.pod.uid or event.pod}"
        if event.deleted or event.replaced_by:
            if refusal := self._refusals.get(identity):
                refusal.is_open = False
        elif identity not in self._refusals and _is_refused(event):
            problem = event.problems[0]
            self._refusals[identity] = _Refusal(event.cluster, event.node, problem.reason, problem.at)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        start = now - self._window
        self._refusals = {name: refusal for name, refusal in self._refusals.items() if self._counts(refusal, now)}
        counts = Counter((refusal.cluster, refusal.node, refusal.reason) for refusal in self._refusals.values())
        for (cluster, node, reason), count in sorted(counts.items()):
            if count < self._rule.at_least:
                continue
            summary = InBothLanguages(
                en=(
                    f"the kubelet of {node} has refused {count} pods, in the last {self._rule.window_minutes:g} "
                    f"minutes or without another in their place since, {reason}: "
                    "see its device plugin, and whether another scheduler places pods there"
                ),
                zh=(
                    f"{node} 的 kubelet 已拒绝 {count} 个 Pod（最近 {self._rule.window_minutes:g} 分钟内，"
                    f"或此后没有替代者），{reason}：查看其设备插件，以及是否有其他调度器向该节点放置 Pod"
                ),
            )
            labels = {"cluster": cluster, "node": node, "reason": reason}
            query = partial(links.link_node, cluster, node, start, now)
            yield Firing(labels, summary, {"refused_pods": float(count)}, query)

    def _counts(self, refusal: _Refusal, now: datetime) -> bool:
        age = now - refusal.time
        return age < self._window or (refusal.is_open and age < self._forget)


def _is_refused(event: PodObserved) -> bool:
    """Tell whether the kubelet refused the pod before a container ran."""
    return event.phase == "Failed" and event.started_at is None and bool(event.node and event.problems)
