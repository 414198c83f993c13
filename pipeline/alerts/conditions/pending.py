"""Kind ``pending``: pods are refused for the same reason again and again.

The pods of one workload are one alert: a job of 500 pods that does not fit is one cause, and one case for people.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal, NamedTuple

from engine.hami.reason_codes import ReasonCode
from pipeline.alerts import links
from pipeline.alerts.conditions.condition import (
    AlertRule,
    Firing,
    Minutes,
    RebuiltCondition,
    to_minutes,
    to_timedelta,
)
from pipeline.alerts.inputs import AlertInput
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import PodMessage, PodObserved, PodRef
from schemas.topics import MESSAGES, PODS

_BINDING: Final = "Binding"
_NO_NODE_FITS: Final = ReasonCode.FILTERING_FAILED.value
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class PendingRule(AlertRule):
    """A pod is refused for the same reason again and again; the pods of one workload are one alert."""

    kind: Literal["pending"]
    for_minutes: Minutes = 30
    reasons: frozenset[str] = frozenset()
    """Only these reason codes; empty: any."""
    namespaces: frozenset[str] = frozenset()
    """Only these namespaces; empty: any."""
    forget_minutes: Minutes = 20
    """Time without an attempt after which a pod no longer waits: kube-scheduler retries at least every five minutes."""

    def create_condition(self) -> "PendingCondition":
        return PendingCondition(self)


class _Case(NamedTuple):
    """Subject of one alert: a workload, or a pod without one."""

    cluster: str
    namespace: str
    workload: str
    pod: str
    """Empty where there is a workload."""


@dataclass(slots=True)
class _RefusedPod:
    cluster: str
    pod: PodRef
    refused_at: datetime
    """The latest refusal."""
    workload: str = ""
    """The workload as in ``PodDescription.workload``, from the latest message that has it."""
    attempt_id: str = ""
    """The attempt of the latest messages."""
    attempts: int = 0
    since: dict[str, datetime] = field(default_factory=dict)
    """Time of the first of the consecutive attempts that a reason refused, by reason."""
    reasons_so_far: set[str] = field(default_factory=set)
    """Reasons of the latest attempt; more messages of it may follow."""
    current: dict[str, datetime] = field(default_factory=dict)
    """``since`` for the reasons of the latest attempt that was read completely."""

    def refuse(self, message: PodMessage) -> None:
        if message.attempt_id != self.attempt_id:
            if message.reported_at < self.refused_at:
                return  # An earlier attempt, delivered a second time.
            self.attempt_id, self.reasons_so_far = message.attempt_id, set()
            self.attempts += 1
        self.workload = message.workload or self.workload
        reason = message.code or message.reason
        self.refused_at = max(self.refused_at, message.reported_at)
        self.reasons_so_far.add(reason)
        self.since.setdefault(reason, message.reported_at)
        # The message about the whole attempt has no code and comes last.
        if not message.code:
            self._complete_attempt()

    @property
    def case(self) -> _Case:
        return _Case(self.cluster, self.pod.namespace, self.workload, "" if self.workload else self.pod.name)

    def _complete_attempt(self) -> None:
        self.since = {reason: first_at for reason, first_at in self.since.items() if reason in self.reasons_so_far}
        # "No node fits" adds nothing to the reasons of nodes; it counts only where there are no others.
        codes = {reason: first_at for reason, first_at in self.since.items() if reason != _NO_NODE_FITS}
        self.current = codes or dict(self.since)


class _LongRefusal(NamedTuple):
    refused: _RefusedPod
    reasons: dict[str, datetime]
    """Start of the refusals for each reason."""

    @property
    def since(self) -> datetime:
        return min(self.reasons.values())


class PendingCondition(RebuiltCondition):
    # Nothing to restore: a pod that still waits has an attempt within the lookback.

    def __init__(self, rule: PendingRule) -> None:
        self._rule, self._for, self._forget = rule, to_timedelta(rule.for_minutes), to_timedelta(rule.forget_minutes)
        self._pods: dict[str, _RefusedPod] = {}
        """Refused pods by the key of events about the pod."""

    @property
    def lookback(self) -> dict[str, timedelta]:
        return {MESSAGES.name: self._for + self._forget, PODS.name: self._forget}

    def observe(self, event: AlertInput) -> None:
        if isinstance(event, PodMessage):
            self._observe_message(event)
        elif isinstance(event, PodObserved) and (event.node or event.phase in _ENDED):
            self._pods.pop(event.key, None)

    def _observe_message(self, message: PodMessage) -> None:
        key = message.key
        refused = self._pods.get(key)
        if refused and refused.pod.uid != message.pod.uid and message.pod.uid:
            refused = None  # Another pod of the same name: its waiting time begins with this message.
        if message.severity == "Warning":
            refused = self._pods[key] = refused or _RefusedPod(message.cluster, message.pod, message.reported_at)
            refused.refuse(message)
        elif message.reason.startswith(_BINDING):
            self._pods.pop(key, None)
        elif refused and not any(reason.startswith(_BINDING) for reason in refused.since):
            # A node fits, so the refusals are over. Failed binds are not: each follows a filter that succeeded.
            self._pods.pop(key, None)

    def list_firing(self, now: datetime) -> Iterator[Firing]:
        for key in [key for key, refused in self._pods.items() if now - refused.refused_at > self._forget]:
            del self._pods[key]
        long_refusals: dict[_Case, list[_LongRefusal]] = {}
        # All pods that wait, not only those that have waited for long: when the first of a job has, most others have
        # for nearly as long.
        pods = Counter(refused.case for refused in self._pods.values())
        for refused in self._pods.values():
            if self._is_covered(refused.pod) and (reasons := self._list_long_standing(refused, now)):
                long_refusals.setdefault(refused.case, []).append(_LongRefusal(refused, reasons))
        for case, refusals in sorted(long_refusals.items()):
            first = min(refusals, key=lambda refusal: (refusal.since, refusal.refused.pod.name))
            if case.workload:
                reasons_of_all = {reason for refusal in refusals for reason in refusal.reasons}
                yield _to_workload_firing(case, first, pods[case], reasons_of_all, now)
            else:
                yield _to_pod_firing(case, first, now)

    def _is_covered(self, pod: PodRef) -> bool:
        return not self._rule.namespaces or pod.namespace in self._rule.namespaces

    def _list_long_standing(self, refused: _RefusedPod, now: datetime) -> dict[str, datetime]:
        return {
            reason: since
            for reason, since in refused.current.items()
            if now - since >= self._for and (not self._rule.reasons or reason in self._rule.reasons)
        }


def _to_pod_firing(case: _Case, refusal: _LongRefusal, now: datetime) -> Firing:
    pod, attempts = refusal.refused.pod, refusal.refused.attempts
    waited = to_minutes(now - refusal.since)
    summary = InBothLanguages(
        en=(
            f"{pod} has been refused for {waited:.0f} minutes ({attempts} attempts) for "
            f"{', '.join(sorted(refusal.reasons))}: its history names the nodes that refuse it"
        ),
        zh=(
            f"{pod} 已被拒绝 {waited:.0f} 分钟（{attempts} 次尝试），原因 {', '.join(sorted(refusal.reasons))}："
            "其历史列出了拒绝它的节点"
        ),
    )
    labels = {"cluster": case.cluster, "namespace": case.namespace, "pod": case.pod}
    numbers = {"pending_minutes": waited, "attempts": float(attempts)}
    return Firing(labels, summary, numbers, partial(links.link_pod, case.cluster, pod, refusal.refused.attempt_id))


def _to_workload_firing(case: _Case, first: _LongRefusal, pods: int, reasons: Iterable[str], now: datetime) -> Firing:
    waited = to_minutes(now - first.since)
    count = f"{pods} pods of {case.workload} are" if pods > 1 else f"1 pod of {case.workload} is"
    summary = InBothLanguages(
        en=(
            f"{count} refused in {case.namespace}, {first.refused.pod.name} for {waited:.0f} minutes "
            f"({first.refused.attempts} attempts), for {', '.join(sorted(reasons))}: "
            "the attempts name the nodes that refuse"
        ),
        zh=(
            f"{case.namespace} 的 {case.workload} 有 {pods} 个 Pod 被拒绝，{first.refused.pod.name} 已 "
            f"{waited:.0f} 分钟（{first.refused.attempts} 次尝试），原因 {', '.join(sorted(reasons))}："
            "各次尝试列出了拒绝的节点"
        ),
    )
    labels = {"cluster": case.cluster, "namespace": case.namespace, "workload": case.workload}
    numbers = {"pending_minutes": waited, "attempts": float(first.refused.attempts), "pods": float(pods)}
    query = partial(links.link_workload, case.cluster, case.namespace, case.workload, first.since, now)
    return Firing(labels, summary, numbers, query)
