"""Pod to its latest attempt, as the records of the attempts topic have it. No I/O.

The bytes of the records are kept and decoded for each request; the decoded columns of a large cluster would take about
three times as much memory.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple

from api.memory.lru import Lru
from engine.summaries.retries import resolve
from schemas.codec.chunking import join
from schemas.codec.records import Rejected, decode_value
from schemas.events import AttemptRepeated, AttemptSummarized, pod_key

MAX_INCOMPLETE_ATTEMPTS: Final = 256
"""Attempts of which some parts are still missing; the oldest, of a worker that died between two parts, leave first."""
_RETRY_BYTES: Final = 500
"""What the event of a retry is counted as, in bytes: it has no columns."""


@dataclass(frozen=True, slots=True)
class CachedAttempt:
    """One attempt in memory."""

    cluster: str
    attempt_id: str
    version: int
    started_at: float
    """Unix time in seconds."""
    values: tuple[bytes, ...]
    """The JSON of its records, or of those of the attempt that it repeats, in the order of their parts."""
    retry: AttemptRepeated | None = None
    """The attempt itself where it repeats another one."""
    status: str = ""
    """As of a summary."""

    @property
    def original_id(self) -> str:
        """The attempt that ``values`` describe: this one, or the one that it repeats."""
        return self.retry.repeats if self.retry else self.attempt_id

    @property
    def recency(self) -> tuple[float, int, str]:
        """Greater is newer: a later attempt, or a later version of the same one."""
        return self.started_at, self.version, self.attempt_id

    def summary(self) -> AttemptSummarized:
        """Decodes ``values``, which takes milliseconds for thousands of nodes."""
        parts = [decode_value(AttemptSummarized, value) for value in self.values]
        original = join([part for part in parts if not isinstance(part, Rejected)])
        return resolve(self.retry, original) if self.retry else original


class Taken(NamedTuple):
    """An attempt that became known as a whole, or known better."""

    attempt: CachedAttempt
    """Without ``values`` where it repeats an attempt that memory does not have."""
    before: CachedAttempt | None
    """What memory had of the pod."""
    is_latest: bool
    """Is it the latest of its pod?"""
    size_bytes: int


class LatestAttempts:
    """Pod (``cluster/namespace/name``) to its latest attempt.

    Thread-safe; records may come in any order and more than once.
    """

    def __init__(self, max_pods: int, max_bytes: int) -> None:
        self.pods: Lru[str, CachedAttempt] = Lru(max_pods, max_bytes)
        self._incomplete: Lru[tuple[str, int], dict[int, bytes]] = Lru(MAX_INCOMPLETE_ATTEMPTS, max_bytes)
        # Held from the comparison with the cached attempt until the newer one is stored.
        self._lock = Lock()

    def add(self, part: AttemptSummarized, value: bytes, now: float) -> Taken | None:
        """Take one record: ``part`` is the decoded ``value``. ``now`` is Unix time in seconds.

        An attempt is answered once all of its parts are there, and replaces an older one of its pod then. None while
        parts are missing, and for what memory has already.
        """
        with self._lock:
            pod, started_at = pod_key(part.cluster, part.pod), part.started_at.timestamp()
            cached = self.pods.peek(pod)
            if cached and cached.recency == (started_at, part.version, part.attempt_id):
                return None
            if not (values := self._complete_values(part, value, now)):
                return None
            attempt = CachedAttempt(part.cluster, part.attempt_id, part.version, started_at, values, status=part.status)
            return self._take(pod, attempt, cached, now)

    def add_retry(self, retry: AttemptRepeated, now: float) -> Taken | None:
        """Take the record of an attempt that repeats the one before it. ``now`` is Unix time in seconds.

        If memory does not have that one, it forgets the pod: what it has is out of date, and the index has both.
        """
        with self._lock:
            pod, started_at = pod_key(retry.cluster, retry.pod), retry.started_at.timestamp()
            cached = self.pods.peek(pod)
            own = (started_at, retry.version, retry.attempt_id)
            if cached and cached.recency == own:
                return None
            known = cached.values if cached and cached.original_id == retry.repeats else ()
            attempt = CachedAttempt(
                retry.cluster, retry.attempt_id, retry.version, started_at, known, retry, retry.status
            )
            if known or (cached and cached.recency > own):
                return self._take(pod, attempt, cached, now)
            self.pods.remove(pod)
            return Taken(attempt, cached, is_latest=True, size_bytes=_size(pod, attempt))

    def get(self, cluster: str, namespace: str, name: str, now: float) -> CachedAttempt | None:
        """The pod's latest attempt; counts as a use at ``now`` (Unix time in seconds)."""
        return self.pods.get(f"{cluster}/{namespace}/{name}", now)

    def find(self, cluster: str, attempt_id: str) -> CachedAttempt | None:
        """The attempt with this id, if it is the latest one of its pod. Goes through all of memory."""
        found = (pod for pod in self.pods.values() if pod.attempt_id == attempt_id)
        return next((attempt for attempt in found if attempt.cluster == cluster), None)

    def of(self, *key: str) -> list[CachedAttempt]:
        """The attempts of a cluster, of one of its namespaces, or of one pod there. Counts as no use."""
        prefix = "/".join(key)
        return [attempt for pod, attempt in self.pods.items() if pod == prefix or pod.startswith(prefix + "/")]

    def _take(self, pod: str, attempt: CachedAttempt, cached: CachedAttempt | None, now: float) -> Taken:
        size_bytes, is_latest = _size(pod, attempt), cached is None or cached.recency < attempt.recency
        if is_latest:
            # A version is the Unix time of the attempt's latest record in microseconds. Records are replayed partition
            # by partition, so the time of arrival says nothing. Never later than now: a pod whose scheduler has a fast
            # clock would never be evicted.
            self.pods.put(pod, attempt, size_bytes, min(attempt.version / 1e6, now))
        return Taken(attempt, cached, is_latest, size_bytes)

    def _complete_values(self, part: AttemptSummarized, value: bytes, now: float) -> tuple[bytes, ...] | None:
        """The values of all parts of the attempt; None while some are missing."""
        if part.parts == 1:
            return (value,)
        key = part.attempt_id, part.version
        values = {**(self._incomplete.peek(key) or {}), part.part: value}
        # The parts of one version are always equally many; with another number, what came before can't be joined.
        if any(number >= part.parts for number in values):
            values = {part.part: value}
        if len(values) < part.parts:
            self._incomplete.put(key, values, sum(map(len, values.values())), now)
            return None
        self._incomplete.remove(key)
        return tuple(values[number] for number in range(part.parts))


def _size(pod: str, attempt: CachedAttempt) -> int:
    return sum(map(len, attempt.values)) + len(pod) + (_RETRY_BYTES if attempt.retry else 0)
