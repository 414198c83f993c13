"""Events of a cluster that tell of a scheduling decision: who said what about which pod, and when.

Both forms of events are read: ``events.k8s.io/v1`` (``regarding``, ``note``, ``series``) and core ``v1``
(``involvedObject``, ``message``, ``count``). Kubernetes folds repetitions into one object that keeps the times of the
first and the last: each of them is told.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from hami.reason_codes import ReasonCode
from ingest.kube.failure_messages import GRAMMAR, refused
from ingest.kube.objects import moment, part, text
from schemas.events import PodRef

Kind = Literal["refused", "failed by code", "failed", "fits", "chosen", "bound", "not bound", "pushed out"]
"""``failed by code`` is one of HAMi's lines about an attempt whose last line is ``failed``. ``fits`` is HAMi's choice,
``chosen`` that of others. ``pushed out``: the pod had to make room."""

_HAMI, _KUBE, _KAI = (
    {name: re.compile(pattern, re.DOTALL) for name, pattern in GRAMMAR[scheduler].items()}
    for scheduler in ("hami", "kube", "kai")
)
_EVICTED: Final = re.compile(r"Pod (?P<pod>[^\s/]+/\S+) was preempted ")
_KAI_SCHEDULER: Final = "kai-scheduler"
_KAI_BINDER: Final = frozenset(("Bound", "BindingError", "FailedBinding"))


@dataclass(frozen=True, slots=True)
class Happening:
    kind: Kind
    time: datetime
    scheduler: str
    pod: PodRef
    text: str = ""
    node: str = ""
    code: str = ""
    count: int = 0
    """Nodes that the line counts."""
    nodes: tuple[str, ...] = ()
    """Nodes that the line names: fewer than it counts where the text is cut."""
    scores: Mapping[str, float] = field(default_factory=dict)
    refused_count: int = 0
    nominated: str = ""
    reason: str = ""


def happenings(event: Mapping[str, Any]) -> Iterator[Happening]:
    """What an event tells: nothing where it is not about a decision; once more for its first and its last time."""
    about = part(event, "regarding") or part(event, "involvedObject")
    read = _READERS.get(text(event, "reason"))
    said = read(_Said(event, about)) if read else None
    if said is None:
        return
    for time in times(event):
        yield replace(said, time=time)


def times(event: Mapping[str, Any]) -> list[datetime]:
    """When it was said first and last, earliest first; once where that is the same."""
    stamps = (
        text(event, "eventTime"), text(event, "deprecatedFirstTimestamp"), text(event, "firstTimestamp"),
        text(event, "series", "lastObservedTime"), text(event, "deprecatedLastTimestamp"),
        text(event, "lastTimestamp"),
    )  # fmt: skip
    found = sorted({time for stamp in stamps if stamp and (time := moment(stamp))})
    return found if len(found) < 3 else [found[0], found[-1]]


class _Said:
    """One event, as its readers look at it."""

    def __init__(self, event: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        self.kind = text(about, "kind")
        self.namespace = text(about, "namespace")
        self.name = text(about, "name")
        self.uid = text(about, "uid")
        self.text = text(event, "note") or text(event, "message")
        self.reason = text(event, "reason")
        self.scheduler = (
            text(event, "reportingController")
            or text(event, "reportingComponent")
            or text(event, "deprecatedSource", "component")
            or text(event, "source", "component")
        )
        if self.reason in _KAI_BINDER:
            # The binder speaks for the scheduler that asked it.
            self.scheduler = _KAI_SCHEDULER

    @property
    def pod(self) -> PodRef | None:
        if self.kind != "Pod" or not self.namespace or not self.name:
            return None
        return PodRef(namespace=self.namespace, name=self.name, uid=self.uid)

    def happened(self, kind: Kind, pod: PodRef | None = None, **more: Any) -> Happening | None:
        """The time is filled in afterwards. None where the event is about no pod."""
        about = pod or self.pod
        if about is None or not self.scheduler:
            return None
        return Happening(kind, _LATER, self.scheduler, about, self.text, reason=self.reason, **more)


_LATER: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _failed_scheduling(said: _Said) -> Happening | None:
    return said.happened("refused")


def _unschedulable(said: _Said) -> Happening | None:
    """KAI on a pod; Volcano and KAI on a pod group, which names a pod only where one is to blame."""
    if said.kind == "Pod":
        return said.happened("refused")
    origin = refused(said.text).origin
    return (
        said.happened("refused", PodRef(namespace=said.namespace, name=origin)) if origin and said.namespace else None
    )


def _scheduled(said: _Said) -> Happening | None:
    if kai := _KAI["assigned"].fullmatch(said.text):
        return said.happened("chosen", node=kai["node"])
    if kube := _KUBE["assigned"].fullmatch(said.text):
        # kube-scheduler says it when the bind is done, KAI when it asks for one.
        return said.happened("bound", node=kube["node"])
    return None


def _preempted(said: _Said) -> Happening | None:
    found = _KUBE["preempted"].fullmatch(said.text)
    return said.happened("pushed out", node=(found["node"] or "") if found else "")


def _evicted(said: _Said) -> Happening | None:
    found = _EVICTED.match(said.text)
    if found is None:
        return said.happened("pushed out")
    namespace, _, name = found["pod"].partition("/")
    return said.happened("pushed out", PodRef(namespace=namespace, name=name))


def _filtering_failed(said: _Said) -> Happening | None:
    if by_code := _HAMI["by_code"].fullmatch(said.text):
        count = min(int(by_code["count"][:12]), 10_000_000)
        return said.happened("failed by code", code=by_code["code"], count=count, nodes=_names(by_code["nodes"]))
    if failed := _HAMI["failed"].fullmatch(said.text):
        return said.happened("failed", count=min(int(failed["total"][:12]), 10_000_000))
    return said.happened("failed")


def _names(said: str) -> tuple[str, ...]:
    """The last name may be cut, or count how many more there are."""
    names = said.split(",")
    if "..." in names[-1]:
        names.pop()
    return tuple(name for name in names if name)


def _filtering_succeed(said: _Said) -> Happening | None:
    found = _HAMI["fits"].fullmatch(said.text)
    if found is None:
        return None
    scores = dict(score for each in found["scores"].split(",") if (score := _score(each)))
    refused_count = min(int(found["refused"][:12]), 10_000_000)
    fits = min(int(found["fit"][:12]), 10_000_000)
    return said.happened("fits", node=found["node"], scores=scores, refused_count=refused_count, count=fits)


def _score(said: str) -> tuple[str, float] | None:
    name, _, score = said.rpartition(":")
    return (name, float(score)) if name and re.fullmatch(r"-?\d{1,12}\.\d\d", score) else None


def _binding_succeed(said: _Said) -> Happening | None:
    found = _HAMI["bound"].fullmatch(said.text)
    return said.happened("bound", node=found["node"] if found else "")


def _not_bound(said: _Said) -> Happening | None:
    found = _KAI["not_bound"].fullmatch(said.text)
    return said.happened("not bound", node=found["node"] if found else "")


def _bound(said: _Said) -> Happening | None:
    found = _KAI["bound"].fullmatch(said.text)
    return said.happened("bound", node=found["node"]) if found else None


def _pipelined(said: _Said) -> Happening | None:
    found = _KAI["pipelined"].fullmatch(said.text)
    return said.happened("chosen", node=found["node"], nominated=found["node"]) if found else None


_READERS: Final[dict[str, Callable[[_Said], Happening | None]]] = {
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
REASONS: Final = frozenset(_READERS)
"""The reasons of events that are read; all others are none of ours."""
