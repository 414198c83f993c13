"""The reader: what the sniffer says about pods and nodes, as observations.

A line says one condition, the events of the contract say all that is known of a pod or a node: what was said before is
remembered and said again. Lines about nodes may have no time (``extra`` has none): they have the latest one before.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ingest.lines.blocks import Lines
from ingest.protocol import EVENT, NOISE, Counts
from ingest.sniffer.message import SnifferMessage, message_of, message_of_line
from schemas.events import Condition, Event, NodeObserved, PodObserved, PodRef

UNNAMED_NAMESPACE: Final = "-"
"""The sniffer's log names no namespace; no namespace of Kubernetes is called so."""
MAX_REMEMBERED: Final = 100_000
PHASES: Final = frozenset(("Pending", "Running", "Succeeded", "Failed", "Unknown"))

_DELETE: Final = "podDelete"
_CAPACITY: Final = "capacity-"
_ALLOCATABLE: Final = "allocatable-"


@dataclass(slots=True)
class _Pod:
    seen: datetime | None = None
    phase: str = ""
    node: str = ""
    conditions: dict[str, Condition] = field(default_factory=dict)


@dataclass(slots=True)
class _Node:
    seen: datetime | None = None
    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)


@dataclass(slots=True)
class _State:
    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)
    pods: OrderedDict[str, _Pod] = field(default_factory=OrderedDict)
    nodes: OrderedDict[str, _Node] = field(default_factory=OrderedDict)
    last_time: datetime | None = None


_STATE: Final = TypeAdapter(_State)


class SnifferLog:
    """``namespace``: of the pods whose lines name none."""

    def __init__(self, namespace: str = UNNAMED_NAMESPACE) -> None:
        self.counts = Counts()
        self._namespace = namespace
        self._state = _State()

    def feed(self, lines: Lines) -> Iterable[Event]:
        told: list[Event] = []
        for at, line in enumerate(lines.texts):
            datum = message_of_line(line)
            if datum is None:
                if line.strip():
                    self.counts.unknown(line)
                else:
                    self.counts.lines[NOISE] += 1
                continue
            written = lines.times[at] if lines.times else None
            told += self._take(datum, written or lines.origin.reference)
        return told

    def send(self, request: dict[str, Any], received: datetime) -> list[Event]:
        """A request to the sniffer's service; ``received`` counts where it says no time."""
        datum = message_of(request)
        if datum is None:
            self.counts.unknown(repr(request).encode(errors="replace"))
            return []
        return list(self._take(datum, received, latest=False))

    def close(self) -> Iterable[Event]:
        """Nothing waits: each line is told at once."""
        return ()

    def save(self) -> bytes:
        return _STATE.dump_json(self._state)

    def restore(self, saved: bytes) -> None:
        try:
            self._state = _STATE.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"no saved state of a sniffer's log: {error.error_count()} errors") from None

    def _take(self, datum: SnifferMessage, otherwise: datetime, *, latest: bool = True) -> Iterator[Event]:
        time = datum.time or (self._state.last_time if latest else None) or otherwise
        self._state.last_time = max(self._state.last_time or time, time)
        self.counts.lines[EVENT] += 1
        self.counts.events += 1
        yield self._node(datum, time) if datum.object == "Node" else self._pod(datum, time)

    def _pod(self, datum: SnifferMessage, time: datetime) -> PodObserved:
        ref = PodRef(namespace=datum.namespace or self._namespace, name=datum.name)
        pod = _remembered(self._state.pods, str(ref), _Pod)
        pod.node = datum.node or pod.node
        if datum.event in PHASES:
            pod.phase = datum.event
        elif datum.event:
            pod.conditions[datum.event] = _condition(datum)
        is_gone = datum.endpoint == _DELETE
        if is_gone:
            # What is said of the name from here on is about another pod.
            del self._state.pods[str(ref)]
        return PodObserved(
            pod=ref, observed_at=_behind(pod, _apart(time, datum)), phase=pod.phase, node=pod.node,
            conditions=list(pod.conditions.values()), deleted=is_gone,
        )  # fmt: skip

    def _node(self, datum: SnifferMessage, time: datetime) -> NodeObserved:
        node = _remembered(self._state.nodes, datum.name, _Node)
        if datum.event:
            node.conditions[datum.event] = _condition(datum)
        node.capacity.update(_starting(datum, _CAPACITY))
        node.allocatable.update(_starting(datum, _ALLOCATABLE))
        return NodeObserved(
            node=datum.name, observed_at=_behind(node, _apart(time, datum)), capacity=dict(node.capacity),
            allocatable=dict(node.allocatable), conditions=list(node.conditions.values()),
        )  # fmt: skip


def _apart(time: datetime, datum: SnifferMessage) -> datetime:
    """Whole seconds hold several conditions of one pod: each has its own microsecond, the same at each reading."""
    if time.microsecond:
        return time
    said = "/".join((datum.event, datum.node, datum.reason, *sorted(datum.extra)))
    return time.replace(
        microsecond=int.from_bytes(blake2b(said.encode(errors="replace"), digest_size=4).digest()) % 10**6
    )


def _behind(known: _Pod | _Node, time: datetime) -> datetime:
    """A line's time is that of its condition; what was read before is said with it, so it is never the earlier.

    By a millisecond, because stores count no finer.
    """
    known.seen = max(time, known.seen + timedelta(milliseconds=1)) if known.seen else time
    return known.seen


def _condition(datum: SnifferMessage) -> Condition:
    """The watcher writes a condition only while it holds."""
    return Condition(
        type=datum.event, status="True", reason=datum.reason, message=datum.message, last_transition_at=datum.time
    )


def _starting(datum: SnifferMessage, start: str) -> dict[str, str]:
    return {key.removeprefix(start): amount for key, amount in datum.extra.items() if key.startswith(start)}


def _remembered(known: OrderedDict[str, Any], name: str, kind: type[Any]) -> Any:
    found = known.pop(name, None) or kind()
    known[name] = found
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)
    return found
