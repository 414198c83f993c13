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

from engine.hami.node_lock import find_locked_node
from engine.hami.reason_codes import ReasonCode
from ingest.readers.kube.failure_messages import GRAMMAR, MAX_COUNT, parse_failure
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects, parse_moment
from schemas.events import PodRef

EventKind = Literal["refused", "failed by code", "failed", "fits", "chosen", "bound", "not bound", "preempted"]
"""HAMi writes one event ``failed by code`` per reason code, then ``failed``. ``fits`` is HAMi's choice, with scores;
``chosen`` that of other schedulers."""

_HAMI, _KUBE, _KAI = (
    {name: re.compile(pattern, re.DOTALL) for name, pattern in GRAMMAR[scheduler].items()}
    for scheduler in ("hami", "kube", "kai")
)
BIND_REJECTED: Final = "binding rejected: "
"""Beginning of kube-scheduler's text about a bind that its extender or a plugin refused."""
NO_REQUEST: Final = "does not request any resource"
"""HAMi's message, up to v2.9, about a pod without a request that it knows: it judged no node, and passed it on."""
_EVICTED: Final = re.compile(r"Pod (?P<pod>[^\s/]+/\S+) was preempted ")
_HELD_REQUEST: Final = re.compile(
    r"does not fit in queue|exceeds the available user quota|Unschedulable request '|queue quota has been exceed"
)
_KAI_SCHEDULER: Final = "kai-scheduler"
_KARPENTER: Final = "karpenter"
_DELETED: Final = "skip schedule deleting pod"
_KAI_BINDER: Final = frozenset(("Bound", "BindingError", "FailedBinding"))
_UNSCHEDULABLE: Final = "UnschedulableOnNodePool"
_FOR_POD: Final = re.compile(GRAMMAR["kai"]["for_pod"], re.DOTALL)


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


def parse_scheduling_events(event: Mapping[str, Any]) -> Iterator[SchedulingEvent]:
    """Parse an event about a decision: one result for the first and one for the last time of a series."""
    parse = _PARSERS.get(get_text(event, "reason"))
    decision = parse(_RawEvent(event)) if parse else None
    if decision is None:
        return
    for time in list_times(event):
        yield replace(decision, time=time)


def list_times(event: Mapping[str, Any]) -> list[datetime]:
    """List the first and the last time of the event, earliest first; one time if they are the same."""
    # The names of both forms of events; which of them are set depends on the client that wrote the event.
    stamps = (
        get_text(event, "eventTime"), get_text(event, "deprecatedFirstTimestamp"), get_text(event, "firstTimestamp"),
        get_text(event, "series", "lastObservedTime"), get_text(event, "deprecatedLastTimestamp"),
        get_text(event, "lastTimestamp"),
    )  # fmt: skip
    moments = sorted({time for stamp in stamps if stamp and (time := parse_moment(stamp))})
    return moments if len(moments) < 3 else [moments[0], moments[-1]]


def find_reporter(event: Mapping[str, Any]) -> str:
    """Find the controller that the event names as its writer, which Kubernetes does not check; empty if none."""
    places = (
        ("reportingController",), ("reportingComponent",), ("deprecatedSource", "component"), ("source", "component"),
    )  # fmt: skip
    return next((name for path in places if (name := get_text(event, *path))), "")


class _RawEvent:
    """A Kubernetes event of either form."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        regarding = get_object(event, "regarding") or get_object(event, "involvedObject")
        self.kind = get_text(regarding, "kind")
        self.namespace = get_text(regarding, "namespace")
        self.name = get_text(regarding, "name")
        self.uid = get_text(regarding, "uid")
        self.text = get_text(event, "note") or get_text(event, "message")
        self.reason = get_text(event, "reason")
        self.scheduler = find_reporter(event)
        if self.reason in _KAI_BINDER:
            # KAI's binder writes these for the scheduler, whose attempt they end.
            self.scheduler = _KAI_SCHEDULER

    @property
    def pod(self) -> PodRef | None:
        if self.kind != "Pod" or not self.namespace or not self.name:
            return None
        return PodRef(namespace=self.namespace, name=self.name, uid=self.uid)

    def to_event(self, kind: EventKind, pod: PodRef | None = None, **more: Any) -> SchedulingEvent | None:
        """Convert to a scheduling event, whose time is set afterwards; None if the event is about no pod."""
        subject = pod or self.pod
        if subject is None or not self.scheduler:
            return None
        return SchedulingEvent(kind, _TIME_UNSET, self.scheduler, subject, self.text, reason=self.reason, **more)


_TIME_UNSET: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _parse_failed_scheduling(event: _RawEvent) -> SchedulingEvent | None:
    """Parse a refusal. A bind that an extender rejected comes with the same reason: the text says so."""
    if event.text.startswith(BIND_REJECTED) and (node := find_locked_node(event.text)):
        return event.to_event("not bound", node=node)
    # Karpenter uses the reason for nodes that it can't add, and schedules nothing; kube-scheduler for a pod that was
    # deleted while it waited, at whose nodes it does not look.
    is_attempt = event.scheduler != _KARPENTER and not event.text.startswith(_DELETED)
    return event.to_event("refused") if is_attempt else None


def _parse_unschedulable(event: _RawEvent) -> SchedulingEvent | None:
    """Parse a refusal of a pod (KAI), or of a pod group (Volcano, KAI), which names a pod only if one is to blame."""
    if event.kind == "Pod":
        return event.to_event("refused")
    origin = parse_failure(event.text).origin
    return (
        event.to_event("refused", PodRef(namespace=event.namespace, name=origin))
        if origin and event.namespace
        else None
    )


def _parse_scheduled(event: _RawEvent) -> SchedulingEvent | None:
    # Both schedulers use the reason Scheduled; only the texts differ.
    if kai := _KAI["assigned"].fullmatch(event.text):
        return event.to_event("chosen", node=kai["node"])
    if kube := _KUBE["assigned"].fullmatch(event.text):
        # kube-scheduler writes it after the bind, KAI (above) when it creates the bind request.
        return event.to_event("bound", node=kube["node"])
    return None


def _parse_preempted(event: _RawEvent) -> SchedulingEvent | None:
    # kube-scheduler writes it on the victim.
    match = _KUBE["preempted"].fullmatch(event.text)
    return event.to_event("preempted", node=(match["node"] or "") if match else "")


def _parse_evicted(event: _RawEvent) -> SchedulingEvent | None:
    match = _EVICTED.match(event.text)
    if match is None:
        return event.to_event("preempted")
    namespace, _, name = match["pod"].partition("/")
    # KAI writes it on the pod's group. Kubernetes binds an event to its object's namespace, but not what the text says.
    if namespace != event.namespace:
        return None
    return event.to_event("preempted", PodRef(namespace=namespace, name=name))


def _parse_filtering_failed(event: _RawEvent) -> SchedulingEvent | None:
    if by_code := _HAMI["by_code"].fullmatch(event.text):
        count = min(int(by_code["count"][:12]), MAX_COUNT)
        return event.to_event("failed by code", code=by_code["code"], count=count, nodes=_split_names(by_code["nodes"]))
    if event.text == NO_REQUEST:
        return None
    if failed := _HAMI["failed"].fullmatch(event.text):
        return event.to_event("failed", count=min(int(failed["total"][:12]), MAX_COUNT))
    return event.to_event("failed")


def _split_names(listed: str) -> tuple[str, ...]:
    names = [name.strip() for name in listed.split(",")]
    # In a long list the last name is cut, or replaced by the number of further nodes.
    if "..." in names[-1]:
        names.pop()
    return tuple(name for name in names if name)


def _parse_filtering_succeed(event: _RawEvent) -> SchedulingEvent | None:
    match = _HAMI["fits"].fullmatch(event.text)
    if match is None:
        return None
    scores = dict(score for entry in match["scores"].split(",") if (score := _parse_score(entry)))
    refused_count = min(int(match["refused"][:12]), MAX_COUNT)
    fits = min(int(match["fit"][:12]), MAX_COUNT)
    return event.to_event("fits", node=match["node"], scores=scores, refused_count=refused_count, count=fits)


def _parse_score(entry: str) -> tuple[str, float] | None:
    name, _, score = entry.rpartition(":")
    return (name, float(score)) if name and re.fullmatch(r"-?\d{1,12}\.\d\d", score) else None


def _parse_binding_succeed(event: _RawEvent) -> SchedulingEvent | None:
    match = _HAMI["bound"].fullmatch(event.text)
    return event.to_event("bound", node=match["node"] if match else "")


def _parse_not_bound(event: _RawEvent) -> SchedulingEvent | None:
    match = _KAI["not_bound"].fullmatch(event.text)
    return event.to_event("not bound", node=match["node"] if match else find_locked_node(event.text))


def _parse_bound(event: _RawEvent) -> SchedulingEvent | None:
    match = _KAI["bound"].fullmatch(event.text)
    return event.to_event("bound", node=match["node"]) if match else None


def _parse_pipelined(event: _RawEvent) -> SchedulingEvent | None:
    match = _KAI["pipelined"].fullmatch(event.text)
    return event.to_event("chosen", node=match["node"], nominated=match["node"]) if match else None


def _parse_informational(event: _RawEvent) -> SchedulingEvent | None:
    """Parse YuniKorn's words about a request that it holds: it has no event of its own for a refusal."""
    return event.to_event("refused") if event.kind == "Pod" and _HELD_REQUEST.search(event.text) else None


_PARSERS: Final[dict[str, Callable[[_RawEvent], SchedulingEvent | None]]] = {
    "FailedScheduling": _parse_failed_scheduling,
    "Unschedulable": _parse_unschedulable,
    "Informational": _parse_informational,
    "Scheduled": _parse_scheduled,
    "Preempted": _parse_preempted,
    "Evict": _parse_evicted,
    ReasonCode.FILTERING_FAILED.value: _parse_filtering_failed,
    ReasonCode.FILTERING_SUCCEED.value: _parse_filtering_succeed,
    ReasonCode.BINDING_SUCCEED.value: _parse_binding_succeed,
    ReasonCode.BINDING_FAILED.value: _parse_not_bound,
    "FailedBinding": _parse_not_bound,
    "BindingError": _parse_not_bound,
    "Bound": _parse_bound,
    "Pipelined": _parse_pipelined,
}
REASONS: Final = frozenset(_PARSERS)
"""The reasons of events that are about a decision."""


def list_group_refusals(group: Mapping[str, Any]) -> Iterator[SchedulingEvent]:
    """List a refusal for each pod that the conditions name; they have no UIDs of pods."""
    for condition in iterate_objects(group, "status", "schedulingConditions"):
        since = parse_moment(get_text(condition, "lastTransitionTime"))
        if since and get_text(condition, "type") == _UNSCHEDULABLE and get_text(condition, "status") == "True":
            for reason in iterate_objects(condition, "reasons"):
                if match := _FOR_POD.fullmatch(get_text(reason, "message").strip()):
                    namespace, _, name = match["pod"].partition("/")
                    pod = PodRef(namespace=namespace, name=name)
                    yield SchedulingEvent(
                        "refused", since, _KAI_SCHEDULER, pod, match["why"], reason=get_text(reason, "reason")
                    )


def is_pod_group(group: Mapping[str, Any]) -> bool:
    return bool(get_text(group, "metadata", "namespace") and get_text(group, "metadata", "name"))
