"""Which alerts fire: what the conditions say, compared with what was told before. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from pipeline.alerts.conditions import Condition, condition_of
from pipeline.alerts.firing import Case
from pipeline.alerts.inputs import Seen
from pipeline.alerts.rules import Rule
from pipeline.alerts.timeline import TICK
from schemas.events import AlertChanged
from schemas.events.alerts import fingerprint

AGAIN_AFTER: Final = timedelta(days=1)
"""What fires is told again, so that it does not expire on its topic."""


class Book:
    """``told``: every alert on the topic, in order. ``until``: ticks up to then were told by whoever ran before."""

    def __init__(self, rules: Sequence[Rule], told: Iterable[AlertChanged], until: datetime) -> None:
        self._rules: list[tuple[Rule, Condition]] = [(rule, condition_of(rule)) for rule in rules]
        self._until = until
        self._firing: dict[str, AlertChanged] = {}
        # What was told after ``until`` is found again, and is not told twice.
        self._told_later: set[tuple[str, datetime]] = set()
        for alert in told:
            if alert.changed_at > until:
                self._told_later.add((alert.id, alert.changed_at))
            elif alert.state == "firing":
                self._firing[alert.fingerprint] = alert
            else:
                self._firing.pop(alert.fingerprint, None)
        self._restore()

    def _restore(self) -> None:
        for alert in self._firing.values():
            for rule, condition in self._rules:
                if rule.name == alert.rule:
                    condition.restore(alert)

    @property
    def firing(self) -> Sequence[AlertChanged]:
        return list(self._firing.values())

    @property
    def reads(self) -> dict[str, timedelta]:
        """Topic to how far back it has to be read."""
        back: dict[str, timedelta] = {}
        for _, condition in self._rules:
            for topic, time in condition.reads.items():
                back[topic] = max(time, back.get(topic, time))
        return back

    def see(self, seen: Seen) -> None:
        for _, condition in self._rules:
            condition.see(seen)

    def tick(self, now: datetime) -> list[AlertChanged]:
        """What is to be told now, in order; nothing up to ``until``."""
        if now <= self._until:
            # The conditions forget at the same ticks as before.
            for _, condition in self._rules:
                deque(condition.holds(now), maxlen=0)
            return []
        told = [*self._changes(now), *self._again(now)]
        return [alert for alert in told if (alert.id, alert.changed_at) not in self._told_later]

    def _changes(self, now: datetime) -> Iterator[AlertChanged]:
        holding: set[str] = set()
        for rule, condition in self._rules:
            for case in condition.holds(now):
                name = fingerprint(rule.name, case.labels)
                holding.add(name)
                if name not in self._firing:
                    self._firing[name] = _alert(rule, case, now)
                    yield self._firing[name]
        for name in [each for each in self._firing if each not in holding]:
            over = self._firing.pop(name)
            yield over.model_copy(update={"state": "resolved", "changed_at": now})

    def _again(self, now: datetime) -> Iterator[AlertChanged]:
        for alert in self._firing.values():
            fires = now - alert.started_at
            if fires >= AGAIN_AFTER and fires % AGAIN_AFTER < TICK:
                yield alert


def _alert(rule: Rule, case: Case, now: datetime) -> AlertChanged:
    return AlertChanged(
        rule=rule.name,
        labels=case.labels,
        state="firing",
        severity=rule.severity,
        started_at=now,
        changed_at=now,
        summary=case.summary,
        numbers=case.numbers,
        query=case.query(),
    )
