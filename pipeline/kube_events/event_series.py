"""Which event counts which message. Pure: what the API server has comes in, what it should have goes out.

Kubernetes takes what one controller says for one reason about one object for a series, whatever the text. A text that
has changed since ("3 nodes …" of yesterday, 40 by now) must be seen too, but not at every retry of a busy cluster. So
an event stands for a pod, a reason, a reason code and a text, and another text begins another event only when the
newest of them has stood for ``FRESH``; until then that one counts it.

Which attempts an event has counted it says itself: the latest ``REMEMBERED`` by name, and all that were said no later
than the ``floor``. So a message is counted once however often and in whatever order it is read.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final, Self

from schemas.events import MessageEmitted
from schemas.ids import microseconds

FRESH: Final = timedelta(minutes=10)
REMEMBERED: Final = 64
_SHORT: Final = 10
"""Characters of an attempt's id."""
FORGOTTEN_AFTER: Final = timedelta(hours=2)
"""An API server drops an event an hour after its last change, unless told otherwise."""


def _digest(*said: str) -> str:
    return blake2b("\x1f".join(said).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def series_of(message: MessageEmitted) -> str:
    """What Kubernetes would take for one series, and the reason code."""
    pod = message.pod
    return _digest(pod.namespace, pod.name, pod.uid, message.scheduler, message.reason, message.code)


def name_of(message: MessageEmitted) -> str:
    """The name of the event that a message begins: equal whenever it is derived."""
    return f"{message.pod.name[:200].rstrip('.-')}.{series_of(message)}{_digest(message.message)[:8]}"


@dataclass(frozen=True, slots=True)
class Counted:
    """The attempts behind a count."""

    floor: int = 0
    """Microseconds since 1970: what was said no later is counted, whichever attempt said it."""
    latest: tuple[tuple[int, str], ...] = ()
    """When it was said, and the attempt, shortened; ascending."""

    def has(self, message: MessageEmitted) -> bool:
        said = microseconds(message.reported_at)
        return said <= self.floor or (said, message.attempt_id[:_SHORT]) in self.latest

    def with_more(self, messages: Iterable[MessageEmitted]) -> Self:
        more = {(microseconds(each.reported_at), each.attempt_id[:_SHORT]) for each in messages}
        every = sorted({*self.latest, *more})
        gone, kept = every[:-REMEMBERED], every[-REMEMBERED:]
        return type(self)(max([self.floor, *(said for said, _ in gone)]), tuple(kept))

    def write(self) -> str:
        """Times count from the one before, in hexadecimal: it stays under two kilobytes."""
        parts, before = [f"{self.floor:x}"], self.floor
        for said, attempt in self.latest:
            parts.append(f"{said - before:x}:{attempt}")
            before = said
        return ",".join(parts)

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises ``ValueError``."""
        first, *rest = text.split(",")
        at = floor = int(first, 16)
        latest = []
        for part in rest:
            step, _, attempt = part.partition(":")
            at += int(step, 16)
            latest.append((at, attempt))
        return cls(floor, tuple(latest))


@dataclass(frozen=True, slots=True)
class Told:
    """An event of ours as the API server has it."""

    name: str
    series: str
    started_at: datetime
    last: datetime
    count: int
    counted: Counted
    version: str
    """Its resourceVersion."""

    def uncounted(self, messages: Iterable[MessageEmitted]) -> list[MessageEmitted]:
        return [each for each in messages if not self.counted.has(each)]


class Book:
    """The events that the API server is known to have; what is not known here may be there all the same."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Told] = {}
        self._of_series: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._told)

    def get(self, namespace: str, name: str) -> Told | None:
        return self._told.get((namespace, name))

    def put(self, namespace: str, told: Told) -> None:
        if (namespace, told.name) not in self._told:
            self._of_series[namespace, told.series].append(told.name)
        self._told[namespace, told.name] = told

    def drop(self, namespace: str, name: str) -> None:
        if told := self._told.pop((namespace, name), None):
            names = self._of_series[namespace, told.series]
            names.remove(name)
            if not names:
                del self._of_series[namespace, told.series]

    def prune(self, now: datetime) -> None:
        """Forget what the API server has forgotten."""
        for (namespace, name), told in list(self._told.items()):
            if now - told.last > FORGOTTEN_AFTER:
                self.drop(namespace, name)

    def assign(self, messages: Sequence[MessageEmitted]) -> dict[tuple[str, str], list[MessageEmitted]]:
        """By namespace and name of the event that counts them, in the order they were read."""
        begun: dict[tuple[str, str], list[tuple[datetime, str]]] = {}
        assigned: dict[tuple[str, str], list[MessageEmitted]] = {}
        for message in messages:
            series = message.pod.namespace, series_of(message)
            known = begun.setdefault(series, self._begun(series))
            name = _counting(message, known)
            if name not in (each for _, each in known):
                known.append((message.reported_at, name))
            assigned.setdefault((message.pod.namespace, name), []).append(message)
        return assigned

    def _begun(self, series: tuple[str, str]) -> list[tuple[datetime, str]]:
        return [(self._told[series[0], name].started_at, name) for name in self._of_series.get(series, ())]


def _counting(message: MessageEmitted, begun: Sequence[tuple[datetime, str]]) -> str:
    """The event with the message's own text, unless it began later; else the newest if it is fresh; else its own."""
    own = name_of(message)
    before = [(began, name) for began, name in begun if began <= message.reported_at]
    if any(name == own for _, name in before) or not before:
        return own
    began, newest = max(before)
    return newest if message.reported_at - began < FRESH else own
