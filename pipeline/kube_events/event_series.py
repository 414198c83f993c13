"""Assignment of messages to the events that count them. Pure: what the API server has comes in, what it should have
comes out.

Kubernetes treats all events of one controller, reason and object as one series, whatever their texts. A changed text
("3 nodes …" yesterday, 40 now) has to be visible too, but not at every retry in a busy cluster. So an event stands
for a pod, a reason, a reason code and a text, and a message with another text begins an event of its own only when the
newest event of the series is older than ``FRESH``; until then that one counts it.

An event records which attempts it has counted: the latest ``REMEMBERED`` by id, and all that were reported no later
than ``floor``. So a message is counted once, however often and in whatever order it is read.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final, Self

from schemas.events import PodMessage
from schemas.ids import count_microseconds

FRESH: Final = timedelta(minutes=10)
REMEMBERED: Final = 64
"""Attempts by id: enough for any order that a consumer group reads in, and under two kilobytes of annotation."""
_ID_LENGTH: Final = 10
"""Characters of an attempt's id. Together with its microsecond they are unique within one pod."""
DROPPED_AFTER: Final = timedelta(hours=2)
"""An API server drops an event an hour after its last change (``--event-ttl``); twice that leaves a margin."""


def _digest(*parts: str) -> str:
    # The separator keeps ("a", "bc") and ("ab", "c") apart.
    return blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def derive_series(message: PodMessage) -> str:
    """Derive the id of the message's series: what Kubernetes treats as one series, and the reason code."""
    pod = message.pod
    return _digest(pod.namespace, pod.name, pod.uid, message.scheduler, message.reason, message.code)


def derive_name(message: PodMessage) -> str:
    """Name the event that a message begins: the same whenever it is derived, so a repeated create conflicts."""
    # A name has at most 253 characters: 200 of the pod's, then the digests of series and text.
    return f"{message.pod.name[:200].rstrip('.-')}.{derive_series(message)}{_digest(message.message)[:8]}"


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """The attempts behind an event's count."""

    floor: int = 0
    """Microseconds since 1970: every attempt that was reported no later is counted."""
    latest: tuple[tuple[int, str], ...] = ()
    """Microsecond and shortened id of the counted attempts after ``floor``, ascending."""

    def has(self, message: PodMessage) -> bool:
        reported = count_microseconds(message.reported_at)
        return reported <= self.floor or (reported, message.attempt_id[:_ID_LENGTH]) in self.latest

    def list_uncounted(self, messages: Iterable[PodMessage]) -> list[PodMessage]:
        return [message for message in messages if not self.has(message)]

    def with_more(self, messages: Iterable[PodMessage]) -> Self:
        more = {(count_microseconds(message.reported_at), message.attempt_id[:_ID_LENGTH]) for message in messages}
        attempts = sorted({*self.latest, *more})
        # What is forgotten raises the floor: an attempt that is older still counts as counted, rather than twice.
        oldest, recent = attempts[:-REMEMBERED], attempts[-REMEMBERED:]
        return type(self)(max([self.floor, *(reported for reported, _ in oldest)]), tuple(recent))

    def write(self) -> str:
        """Write the annotation. Each time is the difference to the one before, in hexadecimal, which keeps it short."""
        parts, before = [f"{self.floor:x}"], self.floor
        for reported, attempt in self.latest:
            parts.append(f"{reported - before:x}:{attempt}")
            before = reported
        return ",".join(parts)

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what ``write`` wrote. Raises ``ValueError``."""
        first, *steps = text.split(",")
        reported = floor = int(first, 16)
        latest = []
        for part in steps:
            step, _, attempt = part.partition(":")
            reported += int(step, 16)
            latest.append((reported, attempt))
        return cls(floor, tuple(latest))


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event that this program wrote, as the API server has it."""

    name: str
    series: str
    started_at: datetime
    latest_at: datetime
    count: int
    annotation: str
    """The attempts behind the count as its annotation has them: as objects they take eight times the memory."""
    version: str
    """Its resourceVersion."""

    def read_counts(self) -> AttemptCounts:
        """Read the attempts behind the count."""
        return AttemptCounts.read(self.annotation)


class EventSeries:
    """The events that the API server is known to have, by series. It may have others: a create then conflicts."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str], PublishedEvent] = {}
        self._names: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        """Names of events by namespace and series."""

    def __len__(self) -> int:
        return len(self._events)

    def get(self, namespace: str, name: str) -> PublishedEvent | None:
        return self._events.get((namespace, name))

    def put(self, namespace: str, event: PublishedEvent) -> None:
        self._names[namespace, event.series].add(event.name)
        self._events[namespace, event.name] = event

    def drop(self, namespace: str, name: str) -> None:
        if event := self._events.pop((namespace, name), None):
            names = self._names[namespace, event.series]
            names.remove(name)
            if not names:
                del self._names[namespace, event.series]

    def prune(self, now: datetime) -> None:
        """Drop the events that the API server has dropped by now."""
        for (namespace, name), event in list(self._events.items()):
            if now - event.latest_at > DROPPED_AFTER:
                self.drop(namespace, name)

    def assign(self, messages: Sequence[PodMessage]) -> dict[tuple[str, str], list[PodMessage]]:
        """Assign the messages to events: by namespace and name of the event, each list in the order it was read."""
        starts: dict[tuple[str, str], list[tuple[datetime, str]]] = {}
        assigned: dict[tuple[str, str], list[PodMessage]] = {}
        for message in messages:
            series = message.pod.namespace, derive_series(message)
            series_starts = starts.setdefault(series, self._list_starts(series))
            name = _choose_event(message, series_starts)
            # A later message of this batch may belong to an event that an earlier one begins.
            if name not in (other for _, other in series_starts):
                series_starts.append((message.reported_at, name))
            assigned.setdefault((message.pod.namespace, name), []).append(message)
        return assigned

    def _list_starts(self, series: tuple[str, str]) -> list[tuple[datetime, str]]:
        return [(self._events[series[0], name].started_at, name) for name in self._names.get(series, ())]


def _choose_event(message: PodMessage, starts: Sequence[tuple[datetime, str]]) -> str:
    """Choose the event with the message's own text, unless it began later; else the newest if it is fresh; else a new
    one."""
    new_name = derive_name(message)
    before = [(started_at, name) for started_at, name in starts if started_at <= message.reported_at]
    if any(name == new_name for _, name in before) or not before:
        return new_name
    started_at, newest = max(before)
    return newest if message.reported_at - started_at < FRESH else new_name
