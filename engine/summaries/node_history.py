"""Registrations and checks of nodes by time: pure. Order and repetition of the events do not matter."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from schemas.events import NodeChecked, NodeRegistered

_TIME = attrgetter("observed_at")


@dataclass(frozen=True, order=True, slots=True)
class NodeKey:
    """Name of a node among those of several clusters."""

    cluster: str
    name: str


class NodeHistory:
    """Registrations and checks, separate per source (scheduler): one may consider a node healthy that another considers
    faulty."""

    def __init__(self) -> None:
        self._checks: dict[NodeKey, dict[str, list[NodeChecked]]] = {}
        self._registered: dict[tuple[NodeKey, str], list[NodeRegistered]] = {}

    def see(self, event: NodeChecked | NodeRegistered) -> None:
        node = NodeKey(event.cluster, event.node)
        if isinstance(event, NodeChecked):
            _put(self._checks.setdefault(node, {}).setdefault(event.scheduler, []), event)
        else:
            _put(self._registered.setdefault((node, event.scheduler), []), event)

    def iterate_latest_checks(self, node: NodeKey, moment: datetime) -> Iterator[NodeChecked]:
        """Iterate over the latest check of each source up to that time."""
        for _, checks in sorted(self._checks.get(node, {}).items()):
            if (behind := bisect_right(checks, moment, key=_TIME)) > 0:
                yield checks[behind - 1]

    def find_registrations(
        self, node: NodeKey, scheduler: str, moment: datetime, until: datetime
    ) -> tuple[NodeRegistered | None, NodeRegistered | None]:
        """Return the scheduler's registration by ``moment``, and the one by ``until`` if it changed in between."""
        registrations = self._registered.get((node, scheduler), [])
        first, last = (bisect_right(registrations, time, key=_TIME) for time in (moment, until))
        return registrations[first - 1] if first else None, registrations[last - 1] if last > first else None

    def forget(self, before: datetime) -> None:
        """Drop events that others superseded by then. An event that still held then stays, however old."""
        for checks in self._checks.values():
            for node_checks in checks.values():
                _cut(node_checks, before)
        for registrations in self._registered.values():
            _cut(registrations, before)


def _put(events: list[NodeChecked] | list[NodeRegistered], event: NodeChecked | NodeRegistered) -> None:
    index = bisect_right(events, event.observed_at, key=_TIME)
    # Two events of one time and source have one id, so they are one event.
    if not index or events[index - 1].observed_at != event.observed_at:
        events.insert(index, event)  # type: ignore[arg-type]


def _cut(events: list[NodeChecked] | list[NodeRegistered], before: datetime) -> None:
    # The last event before the time still held at that time.
    del events[: max(bisect_right(events, before, key=_TIME) - 1, 0)]
