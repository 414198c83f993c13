"""Every pod of a log with its latest attempt: without Kafka, pipeline or index."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from engine.summaries.fold import AttemptFold
from runtime.bounded_cache import BoundedCache
from schemas.answers.attempts import DeviceLog
from schemas.codec.records import decode, encode
from schemas.events import AttemptEvent, AttemptSummarized, DevicesJudged, Event, FindingReported, NodeStateChanged

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
MAX_PODS: Final = 20_000
"""Pods that are kept: the first ones that the log names."""
MAX_STATES: Final = 20_000
"""Node states that are remembered: as many as a reader remembers to have emitted."""
_MAX_ATTEMPTS: Final = 2
"""Attempts kept for a pod: a bind is often reported when the next attempt has begun."""

_StateKey = tuple[str, int]
"""Node and revision."""


class StatesInLog:
    """The node states that records of devices refer to."""

    def __init__(self) -> None:
        self._states: BoundedCache[_StateKey, NodeStateChanged] = BoundedCache(MAX_STATES)

    def add(self, event: NodeStateChanged) -> None:
        self._states.put((event.node, event.revision), event)

    def select(self, devices: DevicesJudged) -> dict[_StateKey, NodeStateChanged]:
        """Select the states that the record refers to."""
        keys = zip(devices.nodes, devices.revision.tolist(), strict=True)
        return {key: state for key in keys if (state := self._states.get(key))}


@dataclass(slots=True)
class AttemptInLog:
    """One attempt, as far as the log reports it."""

    fold: AttemptFold = field(default_factory=AttemptFold)
    devices: list[DevicesJudged] = field(default_factory=list)
    states: dict[_StateKey, NodeStateChanged] = field(default_factory=dict)
    """The node states that ``devices`` refer to."""
    findings: list[FindingReported] = field(default_factory=list)

    def add(self, event: AttemptEvent, states: StatesInLog) -> None:
        # Encoded and decoded, so that the answer is the one that a consumer of the topic would give.
        record = encode(event)
        decoded = decode(record.value, record.headers)
        if isinstance(decoded, AttemptEvent):
            self.fold.add(decoded)
        if isinstance(decoded, DevicesJudged):
            self.devices.append(decoded)
            self.states |= states.select(decoded)
        if isinstance(decoded, FindingReported):
            self.findings.append(decoded)

    def list_devices(self) -> Iterator[DeviceLog]:
        """List the devices of all nodes as the API does with ``?detail=full&node=``."""
        for record in self.devices:
            for row in record.iterate_devices(lambda node, revision: self.states.get((node, revision))):
                yield DeviceLog(container=record.request.container, **row._asdict())


@dataclass(slots=True)
class PodInLog:
    """One pod. ``name`` is ``namespace/name``."""

    name: str
    attempts: int = 0
    _latest: dict[str, AttemptInLog] = field(default_factory=dict)
    """By attempt id, in the order in which the log names them."""

    def add(self, event: AttemptEvent, states: StatesInLog) -> None:
        if event.attempt_id not in self._latest:
            self._latest[event.attempt_id] = AttemptInLog()
            self.attempts += 1
            while len(self._latest) > _MAX_ATTEMPTS:
                del self._latest[next(iter(self._latest))]
        self._latest[event.attempt_id].add(event, states)

    def find_latest(self) -> tuple[AttemptSummarized, AttemptInLog]:
        """Find the attempt that began last, and summarize it."""
        summaries = [(attempt.fold.summarize(), attempt) for attempt in self._latest.values()]
        return max(summaries, key=lambda pair: pair[0].started_at)


@dataclass(slots=True)
class LogPods:
    """Collects the attempts of all pods."""

    pods: dict[str, PodInLog] = field(default_factory=dict)
    """By ``namespace/name``, in the order of the log."""
    left_out: int = 0
    """Events of pods beyond ``MAX_PODS``."""
    last_started_at: datetime = _NEVER
    """The start of the last attempt in the log."""
    _states: StatesInLog = field(default_factory=StatesInLog)

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events of the log."""
        for event in events:
            if isinstance(event, NodeStateChanged):
                self._states.add(event)
            elif isinstance(event, AttemptEvent):
                self._add(event)

    def select(self, pod: str) -> list[PodInLog]:
        """Select the pods named ``pod``: ``namespace/name``, or a name in any namespace; empty selects all pods."""
        if not pod:
            return list(self.pods.values())
        return [candidate for name, candidate in self.pods.items() if pod in (name, name.partition("/")[2])]

    def _add(self, event: AttemptEvent) -> None:
        self.last_started_at = max(self.last_started_at, event.started_at)
        name = str(event.pod)
        if name not in self.pods and len(self.pods) >= MAX_PODS:
            self.left_out += 1
            return
        self.pods.setdefault(name, PodInLog(name)).add(event, self._states)
