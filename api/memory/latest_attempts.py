"""The latest attempt of the latest pods, in memory, as the topic of attempts tells them.

What is kept are the records' own bytes: parsed columns of a large cluster take several times as much.
"""

from dataclasses import dataclass
from threading import Lock

from api.memory.lru import Lru
from schemas.codec.chunking import join
from schemas.codec.records import Rejected, decode_value
from schemas.events import AttemptRepeated, AttemptSummarized
from summaries.retries import resolve

PART_GROUPS = 256
"""Attempts of which some parts are still to come; those of a worker that died in between leave first."""


@dataclass(frozen=True, slots=True)
class Held:
    """One attempt as its records told it, in the order of its parts."""

    attempt_id: str
    version: int
    started_at: float
    values: tuple[bytes, ...]
    repeated: AttemptRepeated | None = None
    """The attempt itself, where ``values`` are those of the attempt that it repeats."""

    @property
    def whole_id(self) -> str:
        """The attempt that ``values`` are about."""
        return self.repeated.repeats if self.repeated else self.attempt_id

    @property
    def age_order(self) -> tuple[float, int, str]:
        """Greater is newer; of one attempt, the telling that knows more."""
        return self.started_at, self.version, self.attempt_id

    def summary(self) -> AttemptSummarized:
        parts = [decode_value(AttemptSummarized, value) for value in self.values]
        whole = join([part for part in parts if not isinstance(part, Rejected)])
        return resolve(self.repeated, whole) if self.repeated else whole


class LatestAttempts:
    """Pod (``namespace/name``) to its latest attempt; safe to use from several threads."""

    def __init__(self, max_pods: int, max_bytes: int) -> None:
        self.pods: Lru[str, Held] = Lru(max_pods, max_bytes)
        self._parts: Lru[tuple[str, int], dict[int, bytes]] = Lru(PART_GROUPS, max_bytes)
        self._lock = Lock()

    def add(self, part: AttemptSummarized, value: bytes, now: float) -> None:
        """Take one record: ``value`` is its own JSON, ``part`` what it says.

        The time at which a telling counts as used is that of its attempt, never later than ``now``: a wrong clock
        somewhere must not keep a pod for ever.
        """
        with self._lock:
            pod, started = str(part.pod), part.started_at.timestamp()
            known = self.pods.peek(pod)
            if known and known.age_order >= (started, part.version, part.attempt_id):
                return
            if values := self._whole(part, value, now):
                held = Held(part.attempt_id, part.version, started, values)
                size = sum(map(len, values)) + len(pod)
                self.pods.put(pod, held, size, min(part.version / 1e6, now))

    def repeat(self, event: AttemptRepeated, now: float) -> None:
        """Take a retry that ended as an attempt before it.

        Without that attempt the pod is forgotten: what is held is out of date, and the index has all of it.
        """
        with self._lock:
            pod, started = str(event.pod), event.started_at.timestamp()
            known = self.pods.peek(pod)
            if known is None or known.age_order >= (started, event.version, event.attempt_id):
                return
            if known.whole_id != event.repeats:
                self.pods.remove(pod)
                return
            held = Held(event.attempt_id, event.version, started, known.values, event)
            self.pods.put(pod, held, sum(map(len, known.values)) + len(pod) + 500, min(event.version / 1e6, now))

    def get(self, namespace: str, name: str, now: float) -> Held | None:
        return self.pods.get(f"{namespace}/{name}", now)

    def _whole(self, part: AttemptSummarized, value: bytes, now: float) -> tuple[bytes, ...] | None:
        """The values of all parts once the last one is there."""
        if part.parts == 1:
            return (value,)
        key = part.attempt_id, part.version
        parts = {**(self._parts.peek(key) or {}), part.part: value}
        # A telling with another number of parts would be another version.
        if any(place >= part.parts for place in parts):
            parts = {part.part: value}
        if len(parts) < part.parts:
            self._parts.put(key, parts, sum(map(len, parts.values())), now)
            return None
        self._parts.remove(key)
        return tuple(parts[place] for place in range(part.parts))
