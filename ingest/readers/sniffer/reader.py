"""The reader of the sniffer's log: observations of pods and nodes.

A line has one condition, an observation has all that is known of a pod or node: so earlier conditions are remembered
and repeated. Lines about nodes may have no time (``extra`` has none); they get the latest time before them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ingest.lines.blocks import Lines
from ingest.readers.sniffer.message import SnifferMessage, message_of, message_of_line
from ingest.reading.protocol import EVENT, NOISE, Counts
from runtime.bounded_cache import BoundedCache
from schemas.events import DEFAULT_CLUSTER, Condition, Event, NodeObserved, PodObserved, PodRef

UNNAMED_NAMESPACE: Final = "-"
"""The sniffer's log names no namespace; ``-`` is not a valid name of one."""
MAX_REMEMBERED: Final = 100_000
"""Pods, and as many nodes; fewer where much is known of each."""
MAX_REMEMBERED_BYTES: Final = 32 * 1024 * 1024
"""Of each."""
PHASES: Final = frozenset(("Pending", "Running", "Succeeded", "Failed", "Unknown"))

_NEVER: Final = datetime(2100, 1, 1, tzinfo=UTC)
_MAX_AHEAD: Final = timedelta(days=1)
_MAX_CONDITIONS: Final = 50
_MAX_RESOURCES: Final = 200
_MAX_NAME: Final = 317
"""Characters: a qualified name of Kubernetes, the longest there is."""
_MAX_TEXT: Final = 1_000
_OBJECT_BYTES: Final = 1_000
_CONDITION_BYTES: Final = 1_000
_AMOUNT_BYTES: Final = 200
"""About what each needs in memory beside its texts."""

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


V = TypeVar("V")
_STATE: Final = TypeAdapter(_State)


class SnifferLog:
    """Reads scheduler-sniffer's log and requests. See ``ingest.reading.protocol.LogReader``."""

    def __init__(self, namespace: str = UNNAMED_NAMESPACE, *, cluster: str = DEFAULT_CLUSTER) -> None:
        """``namespace``: of pods whose lines name none."""
        self.counts = Counts()
        self._namespace, self._cluster = namespace, cluster
        self._pods: BoundedCache[str, _Pod] = _remembered()
        self._nodes: BoundedCache[str, _Node] = _remembered()
        self._last_time: datetime | None = None

    def feed(self, lines: Lines) -> Iterable[Event]:
        events: list[Event] = []
        for at, line in enumerate(lines.texts):
            message = message_of_line(line)
            if message is None:
                if line.strip():
                    self.counts.unknown(line)
                else:
                    self.counts.lines[NOISE] += 1
                continue
            written = lines.times[at] if lines.times else None
            otherwise = written or lines.origin.reference
            # A file's own time may be older than its lines, as after a copy.
            if is_acceptable(message, max(otherwise, _NEVER)):
                events += self._take(message, otherwise)
            else:
                self.counts.unknown(line[:_MAX_TEXT])
        return events

    def send(self, request: dict[str, Any], received: datetime) -> list[Event]:
        """Events of a request to the sniffer's service; ``received`` is used where the request has no time."""
        message = message_of(request)
        if message is None or not is_acceptable(message, received):
            self.counts.unknown(repr(request)[:_MAX_TEXT].encode(errors="replace"))
            return []
        return list(self._take(message, received, latest=False))

    def close(self) -> Iterable[Event]:
        """Nothing: each line gave its event at once."""
        return ()

    def save(self) -> bytes:
        return _STATE.dump_json(_State(_entries(self._pods), _entries(self._nodes), self._last_time))

    def restore(self, saved: bytes) -> None:
        try:
            state = _STATE.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"not a saved state of a sniffer's log: {error.error_count()} errors") from None
        self._pods, self._nodes, self._last_time = _remembered(), _remembered(), state.last_time
        for name, pod in state.pods.items():
            self._pods.put(name, pod)
        for name, node in state.nodes.items():
            self._nodes.put(name, node)

    def _take(self, message: SnifferMessage, otherwise: datetime, *, latest: bool = True) -> Iterator[Event]:
        time = message.time or (self._last_time if latest else None) or otherwise
        self._last_time = max(self._last_time or time, time)
        self.counts.lines[EVENT] += 1
        self.counts.events += 1
        yield self._node(message, time) if message.object == "Node" else self._pod(message, time)

    def _pod(self, message: SnifferMessage, time: datetime) -> PodObserved:
        ref = PodRef(namespace=message.namespace or self._namespace, name=message.name)
        pod = self._pods.get(str(ref)) or _Pod()
        pod.node = message.node or pod.node
        if message.event in PHASES:
            pod.phase = message.event
        elif message.event:
            _note_condition(pod, message)
        is_gone, seen = message.endpoint == _DELETE, _after(pod, time)
        if is_gone:
            # Later lines with this name are about another pod: the sniffer names no UID.
            self._pods.pop(str(ref))
        else:
            self._pods.put(str(ref), pod)
        return PodObserved(
            cluster=self._cluster, pod=ref, observed_at=seen, phase=pod.phase,
            node=pod.node, conditions=list(pod.conditions.values()), deleted=is_gone,
        )  # fmt: skip

    def _node(self, message: SnifferMessage, time: datetime) -> NodeObserved:
        node = self._nodes.get(message.name) or _Node()
        if message.event:
            _note_condition(node, message)
        _update(node.capacity, _starting(message, _CAPACITY))
        _update(node.allocatable, _starting(message, _ALLOCATABLE))
        seen = _after(node, time)
        self._nodes.put(message.name, node)
        return NodeObserved(
            cluster=self._cluster, node=message.name, observed_at=seen,
            capacity=dict(node.capacity), allocatable=dict(node.allocatable), conditions=list(node.conditions.values()),
        )  # fmt: skip


def _after(known: _Pod | _Node, time: datetime) -> datetime:
    """The time of a line; a millisecond after the line before, if that is about the same object and second.

    The sniffer writes whole seconds, and two observations with one time would be one. By a millisecond, because
    OpenSearch stores times to the millisecond.
    """
    known.seen = max(time, known.seen + timedelta(milliseconds=1)) if known.seen else time
    return known.seen


def is_acceptable(message: SnifferMessage, received: datetime) -> bool:
    """False for times of a wrong clock, and for names that no object of Kubernetes has: what is remembered of an object
    would be wrong, or longer than Kafka takes, from then on."""
    names = (message.name, message.namespace, message.node, message.event)
    is_ahead = message.time is not None and message.time > received + _MAX_AHEAD
    return not is_ahead and all(len(name) <= _MAX_NAME for name in names)


def _note_condition(known: _Pod | _Node, message: SnifferMessage) -> None:
    known.conditions[message.event] = _condition(message)
    if len(known.conditions) > _MAX_CONDITIONS:
        del known.conditions[next(iter(known.conditions))]


def _update(known: dict[str, str], amounts: dict[str, str]) -> None:
    for name, amount in amounts.items():
        if len(name) <= _MAX_NAME and (name in known or len(known) < _MAX_RESOURCES):
            known[name] = amount[:_MAX_NAME]


def _condition(message: SnifferMessage) -> Condition:
    """With status True, because the watcher writes a condition only while it holds."""
    return Condition(
        type=message.event,
        status="True",
        reason=message.reason[:_MAX_TEXT],
        message=message.message[:_MAX_TEXT],
        last_transition_at=message.time,
    )


def _starting(message: SnifferMessage, start: str) -> dict[str, str]:
    return {key.removeprefix(start): amount for key, amount in message.extra.items() if key.startswith(start)}


def _entries(known: BoundedCache[str, V]) -> OrderedDict[str, V]:
    return OrderedDict((name, value) for name in known if (value := known.get(name)))


def _remembered() -> BoundedCache[str, Any]:
    """Beyond its bounds what was reported longest ago is forgotten."""
    return BoundedCache(MAX_REMEMBERED, MAX_REMEMBERED_BYTES, _size_of)


def _size_of(known: _Pod | _Node) -> int:
    texts = sum(
        len(condition.type) + len(condition.reason) + len(condition.message) for condition in known.conditions.values()
    )
    amounts = len(known.capacity) + len(known.allocatable) if isinstance(known, _Node) else 0
    return _OBJECT_BYTES + _CONDITION_BYTES * len(known.conditions) + texts + _AMOUNT_BYTES * amounts
