"""What holds, by each kind of rule: folds over what is seen. Pure; the clock is an argument.

``see`` takes what is seen in the order of the timeline; ``holds`` says for what the condition holds now; ``restore``
takes an alert that fires from before what is remembered.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from hami.node_lock import CONTENTION
from pipeline.alerts import links
from pipeline.alerts.firing import Case
from pipeline.alerts.inputs import Arrived, Heard, Seen, SetAside
from pipeline.alerts.pending import Pending
from pipeline.alerts.rules import (
    Behind,
    DeadLetters,
    Dropped,
    Finding,
    Handshake,
    Lock,
    Rule,
    Silent,
    Surge,
    minutes,
)
from pipeline.alerts.rules import Pending as PendingRule
from pipeline.alerts.tick_counter import Buckets
from schemas.events import (
    AlertChanged,
    BindConcluded,
    DetailDropped,
    FindingReported,
    MessageEmitted,
    NodeChecked,
    PodObserved,
)
from schemas.topics import DEAD_LETTERS, DECISIONS, FINDINGS, MESSAGES, NODES, PODS

_ENDED = frozenset({"Succeeded", "Failed"})


class Condition(Protocol):
    @property
    def reads(self) -> dict[str, timedelta]:
        """Topic to how far back it must be read for the condition to be as if it had read all."""

    def see(self, seen: Seen) -> None: ...

    def holds(self, now: datetime) -> Iterator[Case]: ...

    def restore(self, alert: AlertChanged) -> None: ...


class _Remembering:
    """Nothing to restore: what was read back says it all."""

    def restore(self, alert: AlertChanged) -> None:
        del alert


class Surging(_Remembering):
    """Counts attempts by reason and minute."""

    def __init__(self, rule: Surge) -> None:
        self._rule = rule
        self._window, self._before = minutes(rule.window_minutes), minutes(rule.before_minutes)
        self._counts: defaultdict[str, Buckets] = defaultdict(Buckets)
        self._first: datetime | None = None

    @property
    def reads(self) -> dict[str, timedelta]:
        return {MESSAGES.name: self._window + self._before}

    def see(self, seen: Seen) -> None:
        if isinstance(seen, MessageEmitted):
            self._first = min(self._first or seen.reported_at, seen.reported_at)
            if seen.severity == "Warning" and seen.code:
                self._counts[seen.code].add(seen.reported_at)

    def holds(self, now: datetime) -> Iterator[Case]:
        start = now - self._window
        self._forget(start - self._before)
        # Without a whole time before there is nothing to compare with.
        if self._first is None or self._first > start - self._before:
            return
        for reason, times in sorted(self._counts.items()):
            count = times.between(start, now)
            earlier = times.between(start - self._before, start)
            rate, rate_before = count / self._rule.window_minutes, earlier / self._rule.before_minutes
            if count >= self._rule.at_least and rate >= self._rule.factor * rate_before:
                summary = (
                    f"{reason} refuses {rate:.1f} attempts a minute, {rate_before:.1f} in the "
                    f"{self._rule.before_minutes:g} minutes before"
                )
                numbers = {"attempts_per_minute": rate, "attempts_per_minute_before": rate_before}
                yield Case({"reason": reason}, summary, numbers, partial(links.of_reason, reason, start, now))

    def _forget(self, until: datetime) -> None:
        for reason, times in list(self._counts.items()):
            times.forget(until)
            if not times:
                del self._counts[reason]


@dataclass(slots=True)
class _Spell:
    """How long something has been so without a break."""

    since: datetime
    last: datetime
    count: int = 1
    numbers: dict[str, float] = field(default_factory=dict)

    def goes_on(self, at: datetime) -> None:
        self.last, self.count = max(self.last, at), self.count + 1


class Locked(_Remembering):
    def __init__(self, rule: Lock) -> None:
        self._for, self._forget = minutes(rule.for_minutes), minutes(rule.forget_minutes)
        self._spells: dict[str, _Spell] = {}

    @property
    def reads(self) -> dict[str, timedelta]:
        return {DECISIONS.name: self._for + self._forget}

    def see(self, seen: Seen) -> None:
        if not isinstance(seen, BindConcluded):
            return
        if seen.bound or CONTENTION not in seen.error:
            self._spells.pop(seen.node, None)
        elif spell := self._spells.get(seen.node):
            spell.goes_on(seen.ended_at)
        else:
            self._spells[seen.node] = _Spell(seen.ended_at, seen.ended_at)

    def holds(self, now: datetime) -> Iterator[Case]:
        for node, spell in sorted(self._spells.items()):
            if now - spell.last > self._forget:
                del self._spells[node]
            elif now - spell.since >= self._for:
                held = (now - spell.since) / timedelta(minutes=1)
                summary = f"binds to {node} have found it locked for {held:.0f} minutes ({spell.count} tries)"
                numbers = {"locked_minutes": held, "binds": float(spell.count)}
                query = partial(links.of_node, node, spell.since, now, status="failed")
                yield Case({"node": node}, summary, numbers, query)


class Mishandled:
    """Nodes whose latest check found one of the rule's problems. A check is told when something changes, so what fires
    goes on until a check says otherwise."""

    def __init__(self, rule: Handshake) -> None:
        self._codes, self._for = rule.codes, minutes(rule.for_minutes)
        self._wrong: dict[tuple[str, str], tuple[datetime, str]] = {}

    @property
    def reads(self) -> dict[str, timedelta]:
        return {NODES.name: self._for + minutes(60)}

    def see(self, seen: Seen) -> None:
        if isinstance(seen, NodeChecked):
            key = seen.node, seen.scheduler
            found = [problem.message for problem in seen.problems if problem.code in self._codes]
            since = self._wrong.pop(key, (seen.observed_at, ""))[0]
            if found:
                self._wrong[key] = since, "; ".join(found)

    def holds(self, now: datetime) -> Iterator[Case]:
        for (node, scheduler), (since, message) in sorted(self._wrong.items()):
            if now - since >= self._for:
                yield Case(
                    {"node": node, "scheduler": scheduler},
                    f"{node}: {message}",
                    {},
                    partial(links.of_node, node, since, now),
                )

    def restore(self, alert: AlertChanged) -> None:
        key = alert.labels.get("node", ""), alert.labels.get("scheduler", "")
        _, _, message = alert.summary.partition(": ")
        self._wrong[key] = alert.started_at - self._for, message


class Silenced:
    """Schedulers that had pods waiting when they were last heard."""

    def __init__(self, rule: Silent) -> None:
        self._for, self._forget = minutes(rule.for_minutes), minutes(rule.forget_minutes)
        self._heard: dict[str, datetime] = {}
        self._waiting: defaultdict[str, dict[str, datetime]] = defaultdict(dict)

    @property
    def reads(self) -> dict[str, timedelta]:
        # A pod that waits is tried every five minutes at least.
        back = self._for + minutes(10)
        return dict.fromkeys((DECISIONS.name, PODS.name, NODES.name, MESSAGES.name), back)

    def see(self, seen: Seen) -> None:
        if isinstance(seen, (Heard, Arrived)):
            self._hear(seen.scheduler, seen.at)
        elif isinstance(seen, MessageEmitted):
            waiting = self._waiting[seen.scheduler]
            if seen.severity == "Warning":
                waiting[str(seen.pod)] = seen.reported_at
            else:
                waiting.pop(str(seen.pod), None)
        elif isinstance(seen, PodObserved) and (seen.node or seen.phase in _ENDED):
            for waiting in self._waiting.values():
                waiting.pop(str(seen.pod), None)

    def _hear(self, scheduler: str, at: datetime) -> None:
        self._heard[scheduler] = max(at, self._heard.get(scheduler, at))
        self._waiting[scheduler].pop("", None)

    def holds(self, now: datetime) -> Iterator[Case]:
        for scheduler, heard in sorted(self._heard.items()):
            silent, waiting = now - heard, self._waiting[scheduler]
            for pod in [pod for pod, said in waiting.items() if heard - said > minutes(20)]:
                del waiting[pod]
            if silent > self._forget:
                del self._heard[scheduler]
            elif silent >= self._for and waiting:
                count, passed = len(waiting), silent / timedelta(minutes=1)
                summary = f"{scheduler} has said nothing for {passed:.0f} minutes, while pods wait"
                numbers = {"silent_minutes": passed, "waiting_pods": float(count)}
                yield Case({"scheduler": scheduler}, summary, numbers, partial(links.of_scheduler, scheduler))

    def restore(self, alert: AlertChanged) -> None:
        scheduler, heard = alert.labels.get("scheduler", ""), alert.started_at - self._for
        if scheduler not in self._heard:
            self._heard[scheduler] = heard
            self._waiting[scheduler][""] = heard


class Late(_Remembering):
    def __init__(self, rule: Behind) -> None:
        self._rule, self._for, self._forget = rule, minutes(rule.for_minutes), minutes(rule.forget_minutes)
        self._spells: dict[str, _Spell] = {}

    @property
    def reads(self) -> dict[str, timedelta]:
        return {DECISIONS.name: self._for + self._forget}

    def see(self, seen: Seen) -> None:
        if not isinstance(seen, Arrived):
            return
        if seen.behind_seconds < self._rule.seconds:
            self._spells.pop(seen.scheduler, None)
            return
        spell = self._spells.setdefault(seen.scheduler, _Spell(seen.at, seen.at, 0))
        spell.goes_on(seen.at)
        spell.numbers["behind_seconds"] = seen.behind_seconds

    def holds(self, now: datetime) -> Iterator[Case]:
        for scheduler, spell in sorted(self._spells.items()):
            if now - spell.last > self._forget:
                del self._spells[scheduler]
            elif now - spell.since >= self._for:
                behind = spell.numbers["behind_seconds"]
                summary = f"decisions of {scheduler} reach Kafka {behind:.0f} s after they were made: its spool grows"
                yield Case(
                    {"scheduler": scheduler}, summary, dict(spell.numbers), partial(links.of_scheduler, scheduler)
                )


Picked = tuple[dict[str, str], datetime, int]
"""Labels, when, how many."""


class Recent(_Remembering):
    """So many of something within the latest minutes: findings, dropped detail, dead letters."""

    def __init__(
        self,
        topic: str,
        window_minutes: float,
        at_least: int,
        pick: Callable[[Seen], Picked | None],
        tell: Callable[[dict[str, str], int], tuple[str, Callable[[], dict[str, str]]]],
    ) -> None:
        self._topic, self._window, self._at_least = topic, minutes(window_minutes), at_least
        self._pick, self._tell = pick, tell
        self._times: defaultdict[tuple[tuple[str, str], ...], Buckets] = defaultdict(Buckets)

    @property
    def reads(self) -> dict[str, timedelta]:
        return {self._topic: self._window}

    def see(self, seen: Seen) -> None:
        if picked := self._pick(seen):
            labels, at, count = picked
            self._times[tuple(sorted(labels.items()))].add(at, count)

    def holds(self, now: datetime) -> Iterator[Case]:
        for key, times in sorted(self._times.items()):
            times.forget(now - self._window)
            count = times.between(now - self._window, now)
            if not times:
                del self._times[key]
            elif count >= self._at_least:
                summary, query = self._tell(dict(key), count)
                yield Case(dict(key), summary, {"count": float(count)}, query)


def _findings(rule: Finding) -> Recent:
    def pick(seen: Seen) -> Picked | None:
        if not isinstance(seen, FindingReported) or seen.finding not in rule.findings:
            return None
        # KAI pipelines a pod when memory is about to be released: as long as the pod waits for it, nothing is wrong.
        if seen.numbers.get("is_waiting"):
            return None
        return {"finding": seen.finding, "node": seen.node}, seen.found_at, 1

    def tell(labels: dict[str, str], count: int) -> tuple[str, Callable[[], dict[str, str]]]:
        summary = f"{labels['finding']} on {labels['node']}: {count} in {rule.window_minutes:g} minutes"
        return summary, partial(links.of_finding, labels["finding"], labels["node"])

    return Recent(FINDINGS.name, rule.window_minutes, rule.at_least, pick, tell)


def _dropped(rule: Dropped) -> Recent:
    def pick(seen: Seen) -> Picked | None:
        if isinstance(seen, DetailDropped):
            return {"scheduler": seen.scheduler}, seen.dropped_at, seen.device_records
        return None

    def tell(labels: dict[str, str], count: int) -> tuple[str, Callable[[], dict[str, str]]]:
        scheduler = labels["scheduler"]
        summary = (
            f"the spool of {scheduler} is full: {count} device records given up in {rule.window_minutes:g} minutes"
        )
        return summary, partial(links.of_scheduler, scheduler)

    return Recent(DECISIONS.name, rule.window_minutes, rule.at_least, pick, tell)


def _dead_letters(rule: DeadLetters) -> Recent:
    def pick(seen: Seen) -> Picked | None:
        return ({"topic": seen.topic}, seen.at, 1) if isinstance(seen, SetAside) else None

    def tell(labels: dict[str, str], count: int) -> tuple[str, Callable[[], dict[str, str]]]:
        summary = f"{count} records of {labels['topic']} were set aside in {rule.window_minutes:g} minutes"
        return summary, links.of_dead_letters

    return Recent(DEAD_LETTERS.name, rule.window_minutes, rule.at_least, pick, tell)


def condition_of(rule: Rule) -> Condition:
    match rule:
        case PendingRule():
            return Pending(rule)
        case Surge():
            return Surging(rule)
        case Lock():
            return Locked(rule)
        case Handshake():
            return Mishandled(rule)
        case Finding():
            return _findings(rule)
        case Silent():
            return Silenced(rule)
        case Behind():
            return Late(rule)
        case Dropped():
            return _dropped(rule)
        case DeadLetters():
            return _dead_letters(rule)
