"""Kubernetes events that are about a scheduling decision: what happened to which pod, by which scheduler, and when.

Both forms of events are read: ``events.k8s.io/v1`` (``regarding``, ``note``, ``series``) and core ``v1``
(``involvedObject``, ``message``, ``count``). Kubernetes folds repetitions into one object with the times of the first
and the last: each of the two becomes a scheduling event.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from engine.hami.reason_codes import ReasonCode
from ingest.readers.kube.failure_messages import GRAMMAR, MAX_COUNT, parse_failure
from runtime.kubernetes.object_fields import moment, part, text
from schemas.events import PodRef

EventKind = Literal["refused", "failed by code", "failed", "fits", "chosen", "bound", "not bound", "preempted"]
"""HAMi writes one event ``failed by code`` per reason code, then ``failed``. ``fits`` is HAMi's choice, with scores;
``chosen`` that of other schedulers."""

_HAMI, _KUBE, _KAI = (
    {name: re.compile(pattern, re.DOTALL) for name, pattern in GRAMMAR[scheduler].items()}
    for scheduler in ("hami", "kube", "kai")
)
_EVICTED: Final = re.compile(r"Pod (?P<pod>[^\s/]+/\S+) was preempted ")
_KAI_SCHEDULER: Final = "kai-scheduler"
_KAI_BINDER: Final = frozenset(("Bound", "BindingError", "FailedBinding"))


@dataclass(frozen=True, slots=True)
class SchedulingEvent:
    kind: EventKind
    time: datetime
    scheduler: str
    pod: PodRef
    text: str = ""
    node: str = ""
    code: str = ""
    count: int = 0
    """Nodes that the text counts."""
    nodes: tuple[str, ...] = ()
    """Nodes that the text names: fewer than it counts where it was cut."""
    scores: Mapping[str, float] = field(default_factory=dict)
    refused_count: int = 0
    nominated: str = ""
    reason: str = ""


def scheduling_events(event: Mapping[str, Any]) -> Iterator[SchedulingEvent]:
    """None for an event that is not about a decision; one each for the first and the last time of a series."""
    parse = _PARSERS.get(text(event, "reason"))
    found = parse(_RawEvent(event)) if parse else None
    if found is None:
        return
    for time in times(event):
        yield replace(found, time=time)


def times(event: Mapping[str, Any]) -> list[datetime]:
    """The first and the last time of the event, earliest first; one time where they are the same."""
    # The names of both forms of events; which of them are set depends on the client that wrote the event.
    stamps = (
        text(event, "eventTime"), text(event, "deprecatedFirstTimestamp"), text(event, "firstTimestamp"),
        text(event, "series", "lastObservedTime"), text(event, "deprecatedLastTimestamp"),
        text(event, "lastTimestamp"),
    )  # fmt: skip
    found = sorted({time for stamp in stamps if stamp and (time := moment(stamp))})
    return found if len(found) < 3 else [found[0], found[-1]]


def reporter_of(event: Mapping[str, Any]) -> str:
    """Which controller the event names as its writer; Kubernetes does not check it. Empty where it names none."""
    places = (
        ("reportingController",), ("reportingComponent",), ("deprecatedSource", "component"), ("source", "component"),
    )  # fmt: skip
    return next((found for place in places if (found := text(event, *place))), "")


class _RawEvent:
    """A Kubernetes event of either form."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        about = part(event, "regarding") or part(event, "involvedObject")
        self.kind = text(about, "kind")
        self.namespace = text(about, "namespace")
        self.name = text(about, "name")
        self.uid = text(about, "uid")
        self.text = text(event, "note") or text(event, "message")
        self.reason = text(event, "reason")
        self.scheduler = reporter_of(event)
        if self.reason in _KAI_BINDER:
            # KAI's binder writes these for the scheduler, whose attempt they end.
            self.scheduler = _KAI_SCHEDULER

    @property
    def pod(self) -> PodRef | None:
        if self.kind != "Pod" or not self.namespace or not self.name:
            return None
        return PodRef(namespace=self.namespace, name=self.name, uid=self.uid)

    def as_kind(self, kind: EventKind, pod: PodRef | None = None, **more: Any) -> SchedulingEvent | None:
        """None where the event is about no pod. The time is set afterwards."""
        about = pod or self.pod
        if about is None or not self.scheduler:
            return None
        return SchedulingEvent(kind, _TIME_UNSET, self.scheduler, about, self.text, reason=self.reason, **more)


_TIME_UNSET: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _failed_scheduling(event: _RawEvent) -> SchedulingEvent | None:
    return event.as_kind("refused")


def _unschedulable(event: _RawEvent) -> SchedulingEvent | None:
    """KAI writes it on a pod; Volcano and KAI write it on a pod group, and name a pod only where one is to blame."""
    if event.kind == "Pod":
        return event.as_kind("refused")
    origin = parse_failure(event.text).origin
    return (
        event.as_kind("refused", PodRef(namespace=event.namespace, name=origin)) if origin and event.namespace else None
    )


def _scheduled(event: _RawEvent) -> SchedulingEvent | None:
    # Both schedulers use the reason Scheduled; only the texts differ.
    if kai := _KAI["assigned"].fullmatch(event.text):
        return event.as_kind("chosen", node=kai["node"])
    if kube := _KUBE["assigned"].fullmatch(event.text):
        # kube-scheduler writes it after the bind, KAI (above) when it creates the bind request.
        return event.as_kind("bound", node=kube["node"])
    return None


def _preempted(event: _RawEvent) -> SchedulingEvent | None:
    # kube-scheduler writes it on the victim.
    found = _KUBE["preempted"].fullmatch(event.text)
    return event.as_kind("preempted", node=(found["node"] or "") if found else "")


def _evicted(event: _RawEvent) -> SchedulingEvent | None:
    found = _EVICTED.match(event.text)
    if found is None:
        return event.as_kind("preempted")
    namespace, _, name = found["pod"].partition("/")
    # KAI writes it on the pod's group. Kubernetes binds an event to its object's namespace, but not what the text says.
    if namespace != event.namespace:
        return None
    return event.as_kind("preempted", PodRef(namespace=namespace, name=name))


def _filtering_failed(event: _RawEvent) -> SchedulingEvent | None:
    if by_code := _HAMI["by_code"].fullmatch(event.text):
        count = min(int(by_code["count"][:12]), MAX_COUNT)
        return event.as_kind("failed by code", code=by_code["code"], count=count, nodes=_names(by_code["nodes"]))
    if failed := _HAMI["failed"].fullmatch(event.text):
        return event.as_kind("failed", count=min(int(failed["total"][:12]), MAX_COUNT))
    return event.as_kind("failed")


def _names(listed: str) -> tuple[str, ...]:
    names = listed.split(",")
    # In a long list the last name is cut, or replaced by the number of further nodes.
    if "..." in names[-1]:
        names.pop()
    return tuple(name for name in names if name)


def _filtering_succeed(event: _RawEvent) -> SchedulingEvent | None:
    found = _HAMI["fits"].fullmatch(event.text)
    if found is None:
        return None
    scores = dict(score for entry in found["scores"].split(",") if (score := _score(entry)))
    refused_count = min(int(found["refused"][:12]), MAX_COUNT)
    fits = min(int(found["fit"][:12]), MAX_COUNT)
    return event.as_kind("fits", node=found["node"], scores=scores, refused_count=refused_count, count=fits)


def _score(entry: str) -> tuple[str, float] | None:
    name, _, score = entry.rpartition(":")
    return (name, float(score)) if name and re.fullmatch(r"-?\d{1,12}\.\d\d", score) else None


def _binding_succeed(event: _RawEvent) -> SchedulingEvent | None:
    found = _HAMI["bound"].fullmatch(event.text)
    return event.as_kind("bound", node=found["node"] if found else "")


def _not_bound(event: _RawEvent) -> SchedulingEvent | None:
    found = _KAI["not_bound"].fullmatch(event.text)
    return event.as_kind("not bound", node=found["node"] if found else "")


def _bound(event: _RawEvent) -> SchedulingEvent | None:
    found = _KAI["bound"].fullmatch(event.text)
    return event.as_kind("bound", node=found["node"]) if found else None


def _pipelined(event: _RawEvent) -> SchedulingEvent | None:
    found = _KAI["pipelined"].fullmatch(event.text)
    return event.as_kind("chosen", node=found["node"], nominated=found["node"]) if found else None


_PARSERS: Final[dict[str, Callable[[_RawEvent], SchedulingEvent | None]]] = {
    "FailedScheduling": _failed_scheduling,
    "Unschedulable": _unschedulable,
    "Scheduled": _scheduled,
    "Preempted": _preempted,
    "Evict": _evicted,
    ReasonCode.FILTERING_FAILED.value: _filtering_failed,
    ReasonCode.FILTERING_SUCCEED.value: _filtering_succeed,
    ReasonCode.BINDING_SUCCEED.value: _binding_succeed,
    ReasonCode.BINDING_FAILED.value: _not_bound,
    "FailedBinding": _not_bound,
    "BindingError": _not_bound,
    "Bound": _bound,
    "Pipelined": _pipelined,
}
REASONS: Final = frozenset(_PARSERS)
"""The reasons of events that are about a decision."""
