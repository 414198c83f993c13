"""Kind ``handshake``: the latest check of a node found a problem with its handshake or registration."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from pipeline.alerts import links
from pipeline.alerts.conditions.condition import AlertRule, Firing, to_timedelta
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import AlertChanged, NodeChecked, NodeProblem
from schemas.topics import NODES


class HandshakeRule(AlertRule):
    """A node's handshake or registration is wrong."""

    kind: Literal["handshake"]
    codes: frozenset[str]
    """Codes of problems, as in node checked: ``HandshakeTooOld``, …"""
    for_minutes: Annotated[float, Field(ge=0, le=24 * 60)] = 0

    def create_condition(self) -> "HandshakeCondition":
        return HandshakeCondition(self)


@dataclass(frozen=True, slots=True)
class _BrokenNode:
    since: datetime
    problems: list[NodeProblem]


class HandshakeCondition:
    """Nodes whose latest check found one of the rule's problems, per scheduler that checked them."""

    def __init__(self, rule: HandshakeRule) -> None:
        self._codes, self._for = rule.codes, to_timedelta(rule.for_minutes)
        self._broken: dict[tuple[str, str, str], _BrokenNode] = {}
        """Broken nodes by cluster, node and scheduler."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {NODES.name: self._for + to_timedelta(60)}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, NodeChecked):
            key = event.cluster, event.node, event.scheduler
            problems = [problem for problem in event.problems if problem.code in self._codes]
            # A node that still has a problem has it since the first check, also if it is another one now.
            before = self._broken.pop(key, None)
            if problems:
                self._broken[key] = _BrokenNode(before.since if before else event.observed_at, problems)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        # Where a scheduler finds a node broken, what another source found there is no case of its own.
        by_schedulers = {(cluster, node) for cluster, node, scheduler in self._broken if scheduler}
        for (cluster, node, scheduler), broken in sorted(self._broken.items()):
            is_covered = not scheduler and (cluster, node) in by_schedulers
            if now - broken.since >= self._for and not is_covered:
                messages = "; ".join(problem.message for problem in broken.problems)
                # By scheduler too: each checks the nodes by itself.
                yield Firing(
                    {"cluster": cluster, "node": node, "scheduler": scheduler},
                    InBothLanguages(
                        en=f"{node}: {messages}: see whether its device plugin runs and reaches the API server",
                        zh=f"{node}：{messages}：查看其设备插件是否运行，能否连接 API server",
                    ),
                    {},
                    partial(links.link_checks, cluster, node, now),
                    broken.problems,
                )

    def restore(self, alert: AlertChanged) -> None:
        # A check is published when its result changes, maybe weeks before the lookback: only the alert shows it then.
        labels = alert.labels
        if labels.keys() >= {"cluster", "node", "scheduler"}:
            key = labels["cluster"], labels["node"], labels["scheduler"]
            self._broken[key] = _BrokenNode(alert.started_at - self._for, alert.problems)
