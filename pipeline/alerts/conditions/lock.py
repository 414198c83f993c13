"""Kind ``lock``: binds to a node fail because another pod holds the node's lock."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from engine.hami.annotations import NODE_LOCK
from engine.hami.node_lock import CONTENTION
from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Minutes, RebuiltCondition, in_minutes, minutes
from pipeline.alerts.conditions.streak import Streak
from pipeline.alerts.firing import Firing
from pipeline.alerts.inputs import AlertInput
from schemas.events import BindConcluded, LockHolder
from schemas.topics import DECISIONS


class LockRule(AlertRule):
    """Binds to a node fail because another pod holds its lock."""

    kind: Literal["lock"]
    for_minutes: Minutes = 5
    forget_minutes: Minutes = 15
    """After this long without a bind to the node it is unknown whether it is still locked; the alert resolves."""

    def condition(self) -> "LockCondition":
        return LockCondition(self)


class LockCondition(RebuiltCondition):
    """Per node, the binds that failed on its lock since the last one that did not."""

    def __init__(self, rule: LockRule) -> None:
        self._for, self._forget = minutes(rule.for_minutes), minutes(rule.forget_minutes)
        self._contended: dict[tuple[str, str], Streak] = {}
        """By cluster and node."""
        self._holders: dict[tuple[str, str], LockHolder] = {}
        """Who holds each of those locks, if the latest bind names the holder."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {DECISIONS.name: self._for + self._forget}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, BindConcluded):
            return
        key = event.cluster, event.node
        if event.bound or CONTENTION not in event.error:
            # Taking the lock is a bind's first step: one that fails later has had the lock.
            self._contended.pop(key, None)
            self._holders.pop(key, None)
        else:
            if event.lock_holder:
                self._holders[key] = event.lock_holder
            self._contended.setdefault(key, Streak.starting(event.ended_at)).extend(event.ended_at)

    def firing(self, now: datetime) -> Iterator[Firing]:
        for (cluster, node), streak in sorted(self._contended.items()):
            if now - streak.latest_at > self._forget:
                del self._contended[cluster, node]
                self._holders.pop((cluster, node), None)
            elif now - streak.started_at >= self._for:
                locked = in_minutes(now - streak.started_at)
                summary = (
                    f"{streak.count} binds to {node} have failed on its lock in the last {locked:.0f} minutes: see "
                    f"{self._where_to_look(cluster, node)}, and whether the node's device plugin runs"
                )
                numbers = {"locked_minutes": locked, "binds": float(streak.count)}
                # Only failed attempts: on a busy node the bound ones would fill the answer.
                query = partial(links.of_node, cluster, node, streak.started_at, now, status="failed")
                yield Firing({"cluster": cluster, "node": node}, summary, numbers, query)

    def _where_to_look(self, cluster: str, node: str) -> str:
        holder = self._holders.get((cluster, node))
        if holder is None or not holder.pod:
            return f"which pod its annotation {NODE_LOCK} names"
        since = f" since {holder.locked_at:%H:%M:%S}" if holder.locked_at else ""
        return f"{holder.pod}, which has held it{since}"
