"""Attempts that a scheduler's log reports in the words of its Kubernetes events: counts, nodes by name, binds."""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ingest.readers.kube.events import build_events
from ingest.readers.kube.node_verdicts import PodFacts
from ingest.readers.kube.objects import remember
from ingest.readers.kube.open_attempts import EventGroup
from ingest.readers.kube.scheduling_events import SchedulingEvent
from ingest.reading.protocol import Counts
from schemas.events import AttemptConcluded, Event, PodRef

MAX_DEFERRED: Final = 20_000
"""Pods whose latest attempts wait for the end of the log."""
MAX_DEFERRED_TEXT: Final = 4_000
"""Characters of a text that waits so; attempts with longer ones are built at once."""
LATEST: Final = 2
"""Attempts of a pod that wait: a bind may be reported after the next attempt has begun."""

MAX_OPEN: Final = 10_000
"""Pods whose attempts have begun and not ended; the oldest beyond it are forgotten."""


@dataclass(slots=True)
class OpenTry:
    """An attempt of one pod, as far as its lines were read."""

    started_at: datetime
    refused: dict[str, str] = field(default_factory=dict)
    """Reason by the name of each refused node."""
    offered: int = 0
    chosen: str = ""
    failure: str = ""
    """Words of a plugin that failed after a node was chosen; empty if none did."""
    failed_at: datetime | None = None


@dataclass(slots=True)
class LineMemory:
    """The memory between two lines."""

    # A memory that another version saved has other fields: it is refused, and the log is read from its start.
    __pydantic_config__ = ConfigDict(extra="forbid", defer_build=True)

    version: int
    open: dict[str, OpenTry] = field(default_factory=dict)
    """By pod."""
    offered: dict[str, int] = field(default_factory=dict)
    """By job, the number of nodes that it was offered."""
    jobs: dict[str, str] = field(default_factory=dict)
    """By pod, its job."""


_MEMORY: Final = TypeAdapter(LineMemory)


class LineAttempts:
    """Events of what has ended are appended to ``finished_events`` until ``take`` is called."""

    def __init__(self, cluster: str, reader: str, version: int, *, keeps_latest: bool = False) -> None:
        """Start without lines. ``keeps_latest``: ``build_latest`` builds the latest attempts, at the log's end."""
        self._keeps_latest = keeps_latest
        self._deferred: dict[str, deque[list[SchedulingEvent]]] = {}
        self._earlier: Counter[str] = Counter()
        self.counts = Counts()
        self.memory = LineMemory(version)
        self._cluster, self._reader = cluster, reader
        self._chosen: OrderedDict[str, AttemptConcluded] = OrderedDict()
        self.finished_events: list[Event] = []

    def open(self, pod: str, now: datetime) -> OpenTry:
        """Open an attempt of the pod, in place of one that did not end."""
        self.memory.open.pop(pod, None)
        self.memory.open[pod] = OpenTry(now)
        while len(self.memory.open) > MAX_OPEN:
            del self.memory.open[next(iter(self.memory.open))]
        return self.memory.open[pod]

    def find_or_open(self, pod: str, now: datetime) -> OpenTry:
        return self.memory.open.get(pod) or self.open(pod, now)

    def end(self, pod: str, events: Iterable[SchedulingEvent]) -> None:
        """End the pod's attempt with these events, after the refusals of the nodes that its lines named."""
        attempt = self.memory.open.pop(pod, None)
        events = list(events)
        if attempt and attempt.refused and events:
            events = [*_list_refusals(attempt, events[0]), *events]
        if not (self._keeps_latest and self._defer(events)):
            self._build(events)

    def _defer(self, events: list[SchedulingEvent]) -> bool:
        """Let an attempt wait for the end of the log; False if it has to be built at once."""
        name = str(events[0].pod) if events else ""
        is_short = all(len(event.text) <= MAX_DEFERRED_TEXT for event in events)
        # An eviction is a part of the attempt before it.
        is_attempt = bool(name) and all(event.kind != "preempted" for event in events)
        if not (is_short and is_attempt and (name in self._deferred or len(self._deferred) < MAX_DEFERRED)):
            self._build_deferred(name)
            return False
        waiting = self._deferred.setdefault(name, deque())
        waiting.append(events)
        if len(waiting) > LATEST:
            waiting.popleft()
            self._earlier[name] += 1
        return True

    def _build_deferred(self, name: str) -> None:
        for events in self._deferred.pop(name, ()):
            self._build(events)

    def build_latest(self) -> Counter[str]:
        """Build the attempts that wait, and return by pod the number of those that were left out before them."""
        for name in list(self._deferred):
            self._build_deferred(name)
        earlier, self._earlier = self._earlier, Counter()
        return earlier

    def _build(self, events: list[SchedulingEvent]) -> None:
        if not events:
            return
        pod, ended_at = str(events[0].pod), events[-1].time
        before, group = self._chosen.get(pod), EventGroup(events)
        built = list(build_events(self._cluster, group, PodFacts(), ended_at, before, reader=self._reader))
        for event in built:
            if isinstance(event, AttemptConcluded):
                self._count(event)
                if event.chosen:
                    remember(self._chosen, pod, event)
        self.finished_events += built

    def _count(self, end: AttemptConcluded) -> None:
        if end.provenance and end.provenance.not_reported:
            self.counts.attempts_incomplete += 1
        else:
            self.counts.attempts_complete += 1

    def list_unfinished(self) -> set[str]:
        """List the attempts that have not ended, by name."""
        return {f"{pod} {attempt.started_at}" for pod, attempt in self.memory.open.items()}

    def save(self) -> bytes:
        return _MEMORY.dump_json(self.memory)

    def restore(self, saved: bytes) -> None:
        """Restore the memory that ``save`` wrote. Raises ``ValueError`` for that of another version."""
        try:
            memory = _MEMORY.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"another version saved the state of the log: {error.errors()[0]['msg']}") from None
        if memory.version != self.memory.version:
            raise ValueError(f"the saved state has version {memory.version}, this program reads {self.memory.version}")
        self.memory = memory

    def take(self) -> list[Event]:
        """Take the events that were finished since the last call."""
        events, self.finished_events = self.finished_events, []
        self.counts.events += len(events)
        return events


def _list_refusals(attempt: OpenTry, last: SchedulingEvent) -> Iterator[SchedulingEvent]:
    """List the refused nodes by reason, as the events that name nodes do."""
    by_reason: dict[str, list[str]] = {}
    for node, reason in attempt.refused.items():
        by_reason.setdefault(reason, []).append(node)
    for reason, nodes in by_reason.items():
        yield SchedulingEvent(
            "failed by code", last.time, last.scheduler, last.pod, code=reason, count=len(nodes), nodes=tuple(nodes)
        )


@lru_cache(maxsize=20_000)
def split_pod(pod: str) -> PodRef | None:
    """Split ``namespace/name``; None for a text in any other form."""
    namespace, _, name = pod.partition("/")
    return PodRef(namespace=namespace, name=name) if namespace and name and "/" not in name else None
