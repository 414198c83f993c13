"""Groups the scheduling events of one attempt, and holds them until no more are expected.

HAMi writes several events for one attempt (one per reason, a last one, then kube-scheduler's own), each with a time of
its own. Pods are tried again and again: an event that can't belong to one attempt begins the next.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ingest.readers.kube.scheduling_events import EventKind, SchedulingEvent

MAX_SPREAD: Final = timedelta(seconds=2)
"""From the first to the last event of one attempt: HAMi's have whole seconds, and kube-scheduler's comes last."""
QUIET_SECONDS: Final = 2.0
"""Without a further event, after which a pod's attempts are complete."""
MAX_PODS: Final = 100_000
_LAST: Final[frozenset[EventKind]] = frozenset(("refused", "failed", "fits", "chosen"))
_BINDS: Final[frozenset[EventKind]] = frozenset(("bound", "not bound"))
_ORDER: Final[dict[EventKind, int]] = {
    "failed by code": 0, "failed": 1, "fits": 1, "refused": 2, "chosen": 2, "bound": 3, "not bound": 3, "preempted": 4,
}  # fmt: skip
"""The order of events with the same time."""


@dataclass(slots=True)
class EventGroup:
    """The scheduling events of one attempt, in order."""

    events: list[SchedulingEvent] = field(default_factory=list)

    @property
    def kinds(self) -> set[EventKind]:
        return {event.kind for event in self.events}

    @property
    def started_at(self) -> datetime:
        """kube-scheduler's time where it has an event: it has microseconds, and is the same after a restart."""
        # A bind may come late or without other events, so its time counts only where there is no other.
        tried = [event.time for event in self.events if event.kind not in _BINDS] or [self.events[0].time]
        return next((time for time in tried if time.microsecond), tried[0])

    def select(self, *kinds: EventKind) -> list[SchedulingEvent]:
        return [event for event in self.events if event.kind in kinds]

    def accepts(self, event: SchedulingEvent) -> bool:
        """Tell whether a later event can belong to the same attempt."""
        if not self.events:
            return True
        kinds = self.kinds
        if event.kind in _BINDS:
            # However late: a bind waits for volumes. HAMi and kube-scheduler each write an event about the same bind.
            return kinds <= _BINDS or bool(kinds & {"fits", "chosen"})
        if event.time - self.events[0].time > MAX_SPREAD or kinds & _BINDS:
            return False
        return not (event.kind in kinds & _LAST or _contradicts(event.kind, kinds))


def _contradicts(kind: EventKind, kinds: set[EventKind]) -> bool:
    """Tell whether an event can't follow the others: after HAMi's last one only kube-scheduler's own may come."""
    if kind == "failed by code":
        return bool(kinds & _LAST)
    if kind in ("fits", "chosen"):
        return bool(kinds & {"failed", "refused", "failed by code"})
    return kind == "failed" and bool(kinds & _LAST)


def divide_events(events: list[SchedulingEvent]) -> Iterator[EventGroup]:
    """Divide one pod's events into attempts."""
    group = EventGroup()
    for event in sorted(events, key=lambda event: (event.time, _ORDER[event.kind], event.text)):
        if not group.accepts(event):
            yield group
            group = EventGroup()
        group.events.append(event)
    if group.events:
        yield group


@dataclass(slots=True)
class _OpenPod:
    events: list[SchedulingEvent]
    last_event_at: float


class OpenEventGroups:
    """Events that wait for others of their attempt, by pod. Of more than ``MAX_PODS`` the longest waiting is ended."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _OpenPod] = OrderedDict()

    def add(self, event: SchedulingEvent, now: float) -> list[EventGroup]:
        """Add an event; returns the groups of the pod that ended for it. ``now``: as in ``take_settled``."""
        pod = str(event.pod)
        waiting = self._pods.pop(pod, None) or _OpenPod([], now)
        # Lists and watches overlap: the same event comes more than once.
        if event not in waiting.events:
            waiting.events.append(event)
        waiting.last_event_at = now
        self._pods[pod] = waiting
        if len(self._pods) <= MAX_PODS:
            return []
        return list(divide_events(self._pods.popitem(last=False)[1].events))

    def take_settled(self, now: float) -> list[EventGroup]:
        """Remove and return the groups of pods without an event for ``QUIET_SECONDS``."""
        groups: list[EventGroup] = []
        while self._pods:
            pod, waiting = next(iter(self._pods.items()))
            if now - waiting.last_event_at < QUIET_SECONDS:
                break
            del self._pods[pod]
            groups.extend(divide_events(waiting.events))
        return groups

    def take_all(self) -> list[EventGroup]:
        """Remove and return all groups."""
        waiting, self._pods = self._pods, OrderedDict()
        return [group for pod in waiting.values() for group in divide_events(pod.events)]
