"""Every pod of a log with its latest attempt: without Kafka, pipeline or index."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from ingest.log_answers.attempt_in_log import AttemptInLog, StatesInLog
from schemas.answers.devices import DeviceLog
from schemas.events import AttemptEvent, AttemptSummarized, Event, NodeStateChanged

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
MAX_PODS: Final = 20_000
"""Those that the log names first."""
_KEPT_ATTEMPTS: Final = 2
"""Attempts kept for a pod: a bind is often reported when the next attempt has begun."""


@dataclass(slots=True)
class PodInLog:
    """One pod. ``name`` is ``namespace/name``."""

    name: str
    attempts: int = 0
    _latest: dict[str, AttemptInLog] = field(default_factory=dict)

    def add(self, event: AttemptEvent, states: StatesInLog) -> None:
        if event.attempt_id not in self._latest:
            self._latest[event.attempt_id] = AttemptInLog()
            self.attempts += 1
            # Dictionaries keep their order: the first attempt is the one that began first.
            while len(self._latest) > _KEPT_ATTEMPTS:
                del self._latest[next(iter(self._latest))]
        self._latest[event.attempt_id].add(event, states)

    def latest(self) -> tuple[AttemptSummarized, list[DeviceLog]]:
        """The attempt that began last, and the devices that it judged."""
        found = [(attempt.fold.summarize(), attempt) for attempt in self._latest.values()]
        summary, attempt = max(found, key=lambda pair: pair[0].started_at)
        return summary, list(attempt.device_rows())


@dataclass(slots=True)
class LogPods:
    """Collects the attempts of all pods."""

    pods: dict[str, PodInLog] = field(default_factory=dict)
    """By ``namespace/name``, in the order of the log."""
    left_out: int = 0
    """Events of pods beyond ``MAX_PODS``."""
    last_started_at: datetime = _NEVER
    """When the last attempt of the log began."""
    _states: StatesInLog = field(default_factory=StatesInLog)

    def add(self, events: Iterable[Event]) -> None:
        """The next events of the log."""
        for event in events:
            if isinstance(event, NodeStateChanged):
                self._states.add(event)
            elif isinstance(event, AttemptEvent):
                self._add(event)

    def named(self, pod: str) -> list[PodInLog]:
        """The pods of this name, which may be ``namespace/name`` or a name in any namespace."""
        return [candidate for name, candidate in self.pods.items() if pod in (name, name.partition("/")[2])]

    def _add(self, event: AttemptEvent) -> None:
        self.last_started_at = max(self.last_started_at, event.started_at)
        name = str(event.pod)
        if name not in self.pods and len(self.pods) >= MAX_PODS:
            self.left_out += 1
            return
        self.pods.setdefault(name, PodInLog(name)).add(event, self._states)
