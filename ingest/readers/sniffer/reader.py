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
from ingest.readers.sniffer.message import SnifferMessage, parse_line, parse_message
from ingest.reading.protocol import EVENT, NOISE, Counts
from runtime.bounded_cache import BoundedCache
from schemas.events import DEFAULT_CLUSTER, Condition, Event, NodeObserved, PodObserved, PodRef

UNNAMED_NAMESPACE: Final = "-"
"""The sniffer's log names no namespace; ``-`` is not a valid name of one."""
MAX_REMEMBERED: Final = 100_000
"""Pods, and as many nodes; fewer where much is known of each."""
MAX_REMEMBERED_BYTES: Final = 32 * 1024 * 1024
"""Bytes of pods, and as many of nodes."""
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
"""Rough size of each in memory, without its texts."""

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
        """Start at the beginning of a log. ``namespace``: for pods whose lines name none."""
        self.counts = Counts()
        self._namespace, self._cluster = namespace, cluster
        self._pods: BoundedCache[str, _Pod] = _create_cache()
        self._nodes: BoundedCache[str, _Node] = _create_cache()
        self._last_time: datetime | None = None

    def feed(self, lines: Lines) -> Iterable[Event]:
        events: list[Event] = []
        for index, line in enumerate(lines.texts):
            message = parse_line(line)
            if message is None:
                if line.strip():
                    self.counts.count_unknown(line)
                else:
                    self.counts.lines[NOISE] += 1
                continue
            written = lines.times[index] if lines.times else None
            otherwise = written or lines.origin.reference
            # A file's own time may be older than its lines, as after a copy.
            if is_acceptable(message, max(otherwise, _NEVER)):
                events += self._take(message, otherwise)
            else:
                self.counts.count_unknown(line[:_MAX_TEXT])
        return events

    def send(self, request: dict[str, Any], received: datetime) -> list[Event]:
        """Return the events of a request to the sniffer's service; ``received`` stands in for a missing time."""
        message = parse_message(request)
        if message is None or not is_acceptable(message, received):
            self.counts.count_unknown(repr(request)[:_MAX_TEXT].encode(errors="replace"))
            return []
        return list(self._take(message, received, latest=False))

    def close(self) -> Iterable[Event]:
        """Return nothing: each line gave its event at once."""
        return ()

    def save(self) -> bytes:
        return _STATE.dump_json(_State(_to_ordered(self._pods), _to_ordered(self._nodes), self._last_time))

    def restore(self, saved: bytes) -> None:
        try:
            state = _STATE.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"not a saved state of a sniffer's log: {error.error_count()} errors") from None
        self._pods, self._nodes, self._last_time = _create_cache(), _create_cache(), state.last_time
        for name, pod in state.pods.items():
            self._pods.put(name, pod)
        for name, node in state.nodes.items():
            self._nodes.put(name, node)

    def _take(self, message: SnifferMessage, otherwise: datetime, *, latest: bool = True) -> Iterator[Event]:
        time = message.time or (self._last_time if latest else None) or otherwise
        self._last_time = max(self._last_time or time, time)
        self.counts.lines[EVENT] += 1
        self.counts.events += 1
        yield self._observe_node(message, time) if message.object == "Node" else self._observe_pod(message, time)

    def _observe_pod(self, message: SnifferMessage, time: datetime) -> PodObserved:
        ref = PodRef(namespace=message.namespace or self._namespace, name=message.name)
        pod = self._pods.get(str(ref)) or _Pod()
        pod.node = message.node or pod.node
        if message.event in PHASES:
            pod.phase = message.event
        elif message.event:
            _note_condition(pod, message)
        is_gone, seen = message.endpoint == _DELETE, _advance_time(pod, time)
        if is_gone:
            # Later lines with this name are about another pod: the sniffer names no UID.
            self._pods.pop(str(ref))
        else:
            self._pods.put(str(ref), pod)
        return PodObserved(
            cluster=self._cluster, pod=ref, observed_at=seen, phase=pod.phase,
            node=pod.node, conditions=list(pod.conditions.values()), deleted=is_gone,
        )  # fmt: skip

    def _observe_node(self, message: SnifferMessage, time: datetime) -> NodeObserved:
        node = self._nodes.get(message.name) or _Node()
        if message.event:
            _note_condition(node, message)
        _update(node.capacity, _select_amounts(message, _CAPACITY))
        _update(node.allocatable, _select_amounts(message, _ALLOCATABLE))
        seen = _advance_time(node, time)
        self._nodes.put(message.name, node)
        return NodeObserved(
            cluster=self._cluster, node=message.name, observed_at=seen,
            capacity=dict(node.capacity), allocatable=dict(node.allocatable), conditions=list(node.conditions.values()),
        )  # fmt: skip


def _advance_time(subject: _Pod | _Node, time: datetime) -> datetime:
    """Advance the object's time to the line's; a millisecond after the line before, if that has the same second.

    The sniffer writes whole seconds, and two observations with one time would be one. By a millisecond, because
    OpenSearch stores times to the millisecond.
    """
    subject.seen = max(time, subject.seen + timedelta(milliseconds=1)) if subject.seen else time
    return subject.seen


def is_acceptable(message: SnifferMessage, received: datetime) -> bool:
    """Tell whether the time and the names can be right.

    Later observations repeat them: a wrong time would stay, and long names would exceed what Kafka takes.
    """
    names = (message.name, message.namespace, message.node, message.event)
    is_ahead = message.time is not None and message.time > received + _MAX_AHEAD
    return not is_ahead and all(len(name) <= _MAX_NAME for name in names)


def _note_condition(subject: _Pod | _Node, message: SnifferMessage) -> None:
    subject.conditions[message.event] = _to_condition(message)
    if len(subject.conditions) > _MAX_CONDITIONS:
        del subject.conditions[next(iter(subject.conditions))]


def _update(previous: dict[str, str], amounts: dict[str, str]) -> None:
    for name, amount in amounts.items():
        if len(name) <= _MAX_NAME and (name in previous or len(previous) < _MAX_RESOURCES):
            previous[name] = amount[:_MAX_NAME]


def _to_condition(message: SnifferMessage) -> Condition:
    """Convert to a condition with status True: the watcher writes a condition only while it holds."""
    return Condition(
        type=message.event,
        status="True",
        reason=message.reason[:_MAX_TEXT],
        message=message.message[:_MAX_TEXT],
        last_transition_at=message.time,
    )


def _select_amounts(message: SnifferMessage, start: str) -> dict[str, str]:
    return {key.removeprefix(start): amount for key, amount in message.extra.items() if key.startswith(start)}


def _to_ordered(cache: BoundedCache[str, V]) -> OrderedDict[str, V]:
    return OrderedDict((name, value) for name in cache if (value := cache.get(name)))


def _create_cache() -> BoundedCache[str, Any]:
    """Create a cache that forgets what was reported longest ago."""
    return BoundedCache(MAX_REMEMBERED, MAX_REMEMBERED_BYTES, _measure)


def _measure(subject: _Pod | _Node) -> int:
    texts = sum(
        len(condition.type) + len(condition.reason) + len(condition.message)
        for condition in subject.conditions.values()
    )
    amounts = len(subject.capacity) + len(subject.allocatable) if isinstance(subject, _Node) else 0
    return _OBJECT_BYTES + _CONDITION_BYTES * len(subject.conditions) + texts + _AMOUNT_BYTES * amounts
