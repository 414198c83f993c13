"""Firing alerts: compares the cases of the conditions with what has been published. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from engine.summaries.foreign_namespaces import KnownNamespaces
from pipeline.alerts.conditions.condition import Firing, RuleCondition
from pipeline.alerts.inputs import AlertInput
from pipeline.alerts.rules import Rule
from pipeline.alerts.timeline import TICK
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import DEFAULT_CLUSTER, AlertChanged, AttemptEvent, PodMessage, PodObserved, WorkloadObserved
from schemas.events.alerts import compute_fingerprint

REPEATED_EVERY: Final = timedelta(days=1)
"""Interval at which a firing alert is published again, because its topic drops records after a retention time."""


class AlertState:
    """The alerts that fire, and the conditions of all rules.

    ``published``: every alert on the topic, in order. ``published_until``: an earlier run has published the changes of
    all ticks up to this one.
    """

    def __init__(self, rules: Sequence[Rule], published: Iterable[AlertChanged], published_until: datetime) -> None:
        self._rules: list[tuple[Rule, RuleCondition]] = [(rule, rule.create_condition()) for rule in rules]
        self._published_until = published_until
        self._firing: dict[str, AlertChanged] = {}
        self._namespaces = KnownNamespaces()
        # A run that was killed may have published more than it committed: these changes come up again at the same
        # ticks and are left out then.
        self._uncommitted: set[tuple[str, datetime]] = set()
        for alert in published:
            if alert.changed_at > published_until:
                self._uncommitted.add((alert.id, alert.changed_at))
            elif alert.state == "firing":
                self._firing[alert.fingerprint] = alert
            else:
                self._firing.pop(alert.fingerprint, None)
        self._restore()

    def _restore(self) -> None:
        for alert in self._firing.values():
            for rule, condition in self._rules:
                if rule.name == alert.rule:
                    # By the rule's name: a condition knows only what it has read again since the lookback.
                    condition.restore(alert)

    @property
    def firing(self) -> Sequence[AlertChanged]:
        return list(self._firing.values())

    @property
    def lookback(self) -> dict[str, timedelta]:
        """Time by topic that has to be read back before the first tick."""
        longest: dict[str, timedelta] = {}
        for _, condition in self._rules:
            for topic, time in condition.lookback.items():
                longest[topic] = max(time, longest.get(topic, time))
        return longest

    def observe(self, event: AlertInput) -> None:
        self._namespaces.add([_find_namespace(event)])
        for _, condition in self._rules:
            condition.observe(event)

    def tick(self, now: datetime) -> list[AlertChanged]:
        """Evaluate the conditions at this tick; return the alerts to publish, in order; none up to
        ``published_until``."""
        if now <= self._published_until:
            # Conditions drop old entries while they are evaluated: to end up in the state of the earlier run, they
            # have to be evaluated at the same ticks.
            for _, condition in self._rules:
                deque(condition.list_firing(now), maxlen=0)
            return []
        alerts = [*self._list_changes(now), *self._list_repetitions(now)]
        return [alert for alert in alerts if (alert.id, alert.changed_at) not in self._uncommitted]

    def _list_changes(self, now: datetime) -> Iterator[AlertChanged]:
        holding: set[str] = set()
        for rule, condition in self._rules:
            for case in condition.list_firing(now):
                key = compute_fingerprint(rule.name, case.labels)
                holding.add(key)
                if key not in self._firing:
                    self._firing[key] = self._to_alert(rule, case, now)
                    yield self._firing[key]
        # Rules that were removed from the file resolve here too: nothing holds for them any more.
        for key in [key for key in self._firing if key not in holding]:
            over = self._firing.pop(key)
            yield over.model_copy(update={"state": "resolved", "changed_at": now})

    def _to_alert(self, rule: Rule, case: Firing, now: datetime) -> AlertChanged:
        # An alert of a namespace is sent to those who own it.
        namespace, summary = case.labels.get("namespace"), case.summary
        if namespace:
            texts = (self._namespaces.hide_others(text, namespace) for text in (summary.en, summary.zh))
            summary = InBothLanguages(en=next(texts), zh=next(texts))
        return AlertChanged(
            # Not every dead letter names a cluster: what can't be decoded may be of any.
            cluster=case.labels.get("cluster", DEFAULT_CLUSTER),
            rule=rule.name,
            labels=case.labels,
            state="firing",
            severity=rule.severity,
            started_at=now,
            changed_at=now,
            summary=summary.en,
            summary_zh=summary.zh,
            numbers=case.numbers,
            problems=case.problems,
            query=case.links(),
        )

    def _list_repetitions(self, now: datetime) -> Iterator[AlertChanged]:
        for alert in self._firing.values():
            duration = now - alert.started_at
            if duration >= REPEATED_EVERY and duration % REPEATED_EVERY < TICK:
                yield alert


def _find_namespace(event: AlertInput) -> str:
    """Find the namespace that the input is about; empty for one about a node or a scheduler."""
    if isinstance(event, WorkloadObserved):
        return event.namespace
    return event.pod.namespace if isinstance(event, AttemptEvent | PodMessage | PodObserved) else ""
