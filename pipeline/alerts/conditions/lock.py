"""Kind ``lock``: binds to a node fail because another pod holds the node's lock."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from engine.hami.annotations import NODE_LOCK
from engine.hami.node_lock import is_contention
from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, Minutes, RebuiltCondition, to_minutes, to_timedelta
from pipeline.alerts.conditions.occurrences import Streak
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import BindConcluded, LockHolder
from schemas.topics import DECISIONS


class LockRule(AlertRule):
    """Binds to a node fail because another pod holds its lock."""

    kind: Literal["lock"]
    for_minutes: Minutes = 5
    forget_minutes: Minutes = 15
    """Time without a bind to the node after which it is unknown whether it is still locked; the alert resolves."""

    def create_condition(self) -> "LockCondition":
        return LockCondition(self)


class LockCondition(RebuiltCondition):
    """Binds that failed on the lock of a node since the last one that did not, per node."""

    def __init__(self, rule: LockRule) -> None:
        self._for, self._forget = to_timedelta(rule.for_minutes), to_timedelta(rule.forget_minutes)
        self._contended: dict[tuple[str, str], Streak] = {}
        """Failed binds by cluster and node."""
        self._holders: dict[tuple[str, str], LockHolder] = {}
        """The holder of each lock, if the latest bind names it."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {DECISIONS.name: self._for + self._forget}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, BindConcluded):
            return
        key = event.cluster, event.node
        if event.bound or not is_contention(event.error):
            # Taking the lock is a bind's first step: one that fails later has had the lock.
            self._contended.pop(key, None)
            self._holders.pop(key, None)
        else:
            if event.lock_holder and event.lock_holder.pod:
                self._holders[key] = event.lock_holder
            self._contended.setdefault(key, Streak.start(event.ended_at)).extend(event.ended_at)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for (cluster, node), streak in sorted(self._contended.items()):
            if now - streak.latest_at > self._forget:
                del self._contended[cluster, node]
                self._holders.pop((cluster, node), None)
            elif now - streak.started_at >= self._for:
                locked = to_minutes(now - streak.started_at)
                summary = InBothLanguages(
                    en=(
                        f"{streak.count} binds to {node} have failed on its lock in the last {locked:.0f} minutes: see "
                        f"{self._describe_holder(cluster, node).en}, and whether the node's device plugin runs"
                    ),
                    zh=(
                        f"最近 {locked:.0f} 分钟内有 {streak.count} 次到 {node} 的绑定因节点锁失败："
                        f"查看{self._describe_holder(cluster, node).zh}，以及该节点的设备插件是否运行"
                    ),
                )
                numbers = {"locked_minutes": locked, "binds": float(streak.count)}
                # Only failed attempts: on a busy node the bound ones would fill the answer.
                query = partial(links.link_node, cluster, node, streak.started_at, now, status="failed")
                yield Firing({"cluster": cluster, "node": node}, summary, numbers, query)

    def _describe_holder(self, cluster: str, node: str) -> InBothLanguages:
        holder = self._holders.get((cluster, node))
        if holder is None or not holder.pod:
            return InBothLanguages(
                en=f"which pod its annotation {NODE_LOCK} names", zh=f"其注解 {NODE_LOCK} 所指的 Pod"
            )
        since = f" since {holder.locked_at:%H:%M:%S}" if holder.locked_at else ""
        since_zh = f"自 {holder.locked_at:%H:%M:%S} 起" if holder.locked_at else ""
        return InBothLanguages(en=f"{holder.pod}, which has held it{since}", zh=f"{since_zh}持有它的 {holder.pod}")
