"""Pods that are refused for the same reason again and again."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from hami.reason_codes import ReasonCode
from pipeline.alerts import links
from pipeline.alerts.firing import Case
from pipeline.alerts.inputs import Seen
from pipeline.alerts.rules import Pending as Rule
from pipeline.alerts.rules import minutes
from schemas.events import AlertChanged, MessageEmitted, PodObserved, PodRef
from schemas.topics import MESSAGES, PODS

_BINDING: Final = "Binding"
_WHOLE: Final = ReasonCode.FILTERING_FAILED.value
_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(slots=True)
class _Pod:
    pod: PodRef
    last: datetime
    attempt: str = ""
    attempts: int = 0
    since: dict[str, datetime] = field(default_factory=dict)
    """Reason to the first attempt of the unbroken row that it refused."""
    said_now: set[str] = field(default_factory=set)
    """Reasons of the attempt, as far as they are told."""
    current: dict[str, datetime] = field(default_factory=dict)
    """``since`` for the reasons of the latest attempt that is told to its end."""

    def refuse(self, message: MessageEmitted) -> None:
        if message.attempt_id != self.attempt:
            if message.reported_at < self.last:
                return  # told again
            self.attempt, self.said_now = message.attempt_id, set()
            self.attempts += 1
        reason = message.code or message.reason
        self.last = max(self.last, message.reported_at)
        self.said_now.add(reason)
        self.since.setdefault(reason, message.reported_at)
        if not message.code:
            self._end()

    def _end(self) -> None:
        """The line about the whole attempt comes last; it is a reason itself where no other is known."""
        self.since = {reason: at for reason, at in self.since.items() if reason in self.said_now}
        codes = {reason: at for reason, at in self.since.items() if reason != _WHOLE}
        self.current = codes or dict(self.since)


class Pending:
    def __init__(self, rule: Rule) -> None:
        self._rule, self._for, self._forget = rule, minutes(rule.for_minutes), minutes(rule.forget_minutes)
        self._pods: dict[str, _Pod] = {}

    @property
    def reads(self) -> dict[str, timedelta]:
        back = self._for + self._forget
        return {MESSAGES.name: back, PODS.name: self._forget}

    def see(self, seen: Seen) -> None:
        if isinstance(seen, MessageEmitted):
            self._hear(seen)
        elif isinstance(seen, PodObserved) and (seen.node or seen.phase in _ENDED):
            self._pods.pop(str(seen.pod), None)

    def _hear(self, message: MessageEmitted) -> None:
        key = str(message.pod)
        known = self._pods.get(key)
        if known and known.pod.uid != message.pod.uid and message.pod.uid:
            known = None
        if message.severity == "Warning":
            known = self._pods[key] = known or _Pod(message.pod, message.reported_at)
            known.refuse(message)
        elif message.reason.startswith(_BINDING):
            self._pods.pop(key, None)
        elif known and not any(reason.startswith(_BINDING) for reason in known.since):
            # It fits; only binds that fail afterwards can go on from here.
            self._pods.pop(key, None)

    def holds(self, now: datetime) -> Iterator[Case]:
        for key, pod in sorted(self._pods.items()):
            if now - pod.last > self._forget:
                del self._pods[key]
            elif self._is_meant(pod.pod) and (reasons := self._long_ones(pod, now)):
                yield self._case(pod, reasons, now)

    def _is_meant(self, pod: PodRef) -> bool:
        return not self._rule.namespaces or pod.namespace in self._rule.namespaces

    def _long_ones(self, pod: _Pod, now: datetime) -> dict[str, datetime]:
        return {
            reason: at
            for reason, at in pod.current.items()
            if now - at >= self._for and (not self._rule.reasons or reason in self._rule.reasons)
        }

    def _case(self, pod: _Pod, reasons: dict[str, datetime], now: datetime) -> Case:
        waited = (now - min(reasons.values())) / timedelta(minutes=1)
        summary = f"{pod.pod} has been refused for {waited:.0f} minutes for {', '.join(sorted(reasons))}"
        labels = {"namespace": pod.pod.namespace, "pod": pod.pod.name}
        numbers = {"pending_minutes": waited, "attempts": float(pod.attempts)}
        return Case(labels, summary, numbers, partial(links.of_pod, pod.pod))

    def restore(self, alert: AlertChanged) -> None:
        """Nothing: a pod that still waits was tried within what is read back."""
