"""Registrations and checks of nodes by time: pure. The order and repetition of events do not matter."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from schemas.events import NodeChecked, NodeRegistered

_TIME = attrgetter("observed_at")


@dataclass(frozen=True, order=True, slots=True)
class NodeKey:
    """Names a node among those of several clusters."""

    cluster: str
    name: str


class NodeHistory:
    """Each source (a scheduler's name) has its own history: one may find a node healthy that another finds faulty."""

    def __init__(self) -> None:
        self._checks: dict[NodeKey, dict[str, list[NodeChecked]]] = {}
        self._registered: dict[tuple[NodeKey, str], list[NodeRegistered]] = {}

    def see(self, event: NodeChecked | NodeRegistered) -> None:
        node = NodeKey(event.cluster, event.node)
        if isinstance(event, NodeChecked):
            _put(self._checks.setdefault(node, {}).setdefault(event.scheduler, []), event)
        else:
            _put(self._registered.setdefault((node, event.scheduler), []), event)

    def checked(self, node: NodeKey, at: datetime) -> Iterator[NodeChecked]:
        """The latest check of each source by then."""
        for _, checks in sorted(self._checks.get(node, {}).items()):
            if (behind := bisect_right(checks, at, key=_TIME)) > 0:
                yield checks[behind - 1]

    def registered(
        self, node: NodeKey, scheduler: str, at: datetime, until: datetime
    ) -> tuple[NodeRegistered | None, NodeRegistered | None]:
        """As the scheduler had it by ``at``; and as it had it by ``until``, where it changed in between."""
        known = self._registered.get((node, scheduler), [])
        first, last = (bisect_right(known, time, key=_TIME) for time in (at, until))
        return known[first - 1] if first else None, known[last - 1] if last > first else None

    def forget(self, before: datetime) -> None:
        """Drop what was superseded by then. What still held then is kept, however old."""
        for checks in self._checks.values():
            for known_checks in checks.values():
                _cut(known_checks, before)
        for known in self._registered.values():
            _cut(known, before)


def _put(known: list[NodeChecked] | list[NodeRegistered], event: NodeChecked | NodeRegistered) -> None:
    place = bisect_right(known, event.observed_at, key=_TIME)
    # Two of one time and one source have one id, so they are one.
    if not place or known[place - 1].observed_at != event.observed_at:
        known.insert(place, event)  # type: ignore[arg-type]


def _cut(known: list[NodeChecked] | list[NodeRegistered], before: datetime) -> None:
    # The last one before the time is what held at that time.
    del known[: max(bisect_right(known, before, key=_TIME) - 1, 0)]
