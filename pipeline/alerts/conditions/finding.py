"""Kind ``finding``: audits found placements that can't be right."""

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
from schemas.events import FindingReported
from schemas.topics import FINDINGS


class FindingRule(AlertRule):
    """A placement that can't be right."""

    kind: Literal["finding"]
    findings: frozenset[str]
    """Names of findings, as in finding reported: ``Overcommitted``, …"""
    window_minutes: Minutes = 60
    at_least: Annotated[int, Field(ge=1)] = 1

    def create_condition(self) -> "FindingCondition":
        return FindingCondition(self)


class FindingCondition(RebuiltCondition):
    """Counts findings by cluster, name and node."""

    def __init__(self, rule: FindingRule) -> None:
        self._rule = rule
        self._findings = WindowCount(to_timedelta(rule.window_minutes))

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {FINDINGS.name: self._findings.window}

    def observe(self, event: AlertInput) -> None:
        if not isinstance(event, FindingReported) or event.finding not in self._rule.findings:
            return
        # KAI pipelines a pod when memory is about to be released: while the pod waits for it, nothing is wrong.
        if not event.numbers.get("is_waiting"):
            # By node, not by pod: one broken node would otherwise raise an alert for every pod on it.
            labels = {"cluster": event.cluster, "finding": event.finding, "node": event.node}
            self._findings.add(labels, event.found_at)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for labels, count in self._findings.list_reaching(self._rule.at_least, now):
            finding, node = labels["finding"], labels["node"]
            summary = InBothLanguages(
                en=(
                    f"{finding} on {node}: {count} in {self._rule.window_minutes:g} minutes: "
                    "the findings name the pods, the devices and the numbers"
                ),
                zh=(
                    f"{self._rule.window_minutes:g} 分钟内 {node} 上发现 {finding} {count} 次："
                    "发现记录列出了 Pod、设备和数值"
                ),
            )
            query = partial(links.link_finding, labels["cluster"], finding, node)
            yield Firing(labels, summary, {"count": float(count)}, query)
