"""Pods with their latest attempts, as the records of the attempts topic. No I/O.

Memory holds the bytes of the records, and each request decodes them: the decoded columns of a large cluster would take
about three times as much memory.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, NamedTuple

from api.memory.lru import Lru
from engine.summaries.foreign_namespaces import KnownNamespaces
from engine.summaries.retries import resolve
from schemas.codec.chunking import join
from schemas.codec.records import Rejected, decode_value
from schemas.documents.pod_states import name_workload
from schemas.events import AttemptRepeated, AttemptSummarized, build_pod_key

MAX_INCOMPLETE_ATTEMPTS: Final = 256
"""Maximum number of attempts with missing parts; the oldest, of a worker that died between two parts, leave first."""
_RETRY_BYTES: Final = 500
"""Size of the event of a retry, which has no columns."""


@dataclass(frozen=True, slots=True)
class CachedAttempt:
    """Attempt in memory."""

    cluster: str
    attempt_id: str
    version: int
    started_at: float
    """Unix time in seconds."""
    values: tuple[bytes, ...]
    """JSON of its records, or of those of the attempt that it repeats, in the order of their parts."""
    retry: AttemptRepeated | None = None
    """Record of the attempt itself, if it repeats another one."""
    status: str = ""
    """Status of its summary."""

    @property
    def original_id(self) -> str:
        """Attempt that ``values`` describe: this one, or the one that it repeats."""
        return self.retry.repeats if self.retry else self.attempt_id

    @property
    def waits(self) -> bool:
        """True if the pod waits after it."""
        return self.status != "succeeded"

    @property
    def recency(self) -> tuple[float, int, str]:
        """Key that is greater for a later attempt, and for a later version of the same attempt."""
        return self.started_at, self.version, self.attempt_id

    def read_summary(self) -> AttemptSummarized:
        """Decode ``values``, which takes milliseconds for thousands of nodes."""
        parts = [decode_value(AttemptSummarized, value) for value in self.values]
        original = join([part for part in parts if not isinstance(part, Rejected)])
        return resolve(self.retry, original) if self.retry else original


class Taken(NamedTuple):
    """Change in memory: an attempt that became complete, or a newer version of one."""

    attempt: CachedAttempt
    """Attempt; without ``values`` if it repeats an attempt that memory does not have."""
    before: CachedAttempt | None
    """Attempt of the pod that memory had before."""
    is_latest: bool
    """True if it is the latest attempt of its pod."""
    size_bytes: int


class LatestAttempts:
    """Pods (``cluster/namespace/name``) with their latest attempts.

    Thread-safe; records may come in any order and more than once.
    """

    def __init__(self, max_pods: int, max_bytes: int) -> None:
        self.pods: Lru[str, CachedAttempt] = Lru(max_pods, max_bytes)
        self.namespaces = KnownNamespaces()
        """Namespaces of all attempts that were added, and those of other readers."""
        self._workloads: Lru[str, None] = Lru(max_pods, max_bytes)
        self._incomplete: Lru[tuple[str, int], dict[int, bytes]] = Lru(MAX_INCOMPLETE_ATTEMPTS, max_bytes)
        # Held from the comparison with the cached attempt until the newer one is stored.
        self._lock = Lock()

    def add(self, part: AttemptSummarized, value: bytes, now: float) -> Taken | None:
        """Add one record: ``part`` is the decoded ``value``. ``now`` is Unix time in seconds.

        An attempt replaces an older one of its pod once all of its parts are there. Returns None while parts are
        missing, and for a record that memory already has.
        """
        self.namespaces.add([part.pod.namespace])
        if part.description and part.description.owners:
            owner = part.description.owners[-1]
            key = f"{part.cluster}/{part.pod.namespace}/{name_workload(owner.kind, owner.name)}"
            self._workloads.put(key, None, len(key), now)
        with self._lock:
            pod, started_at = build_pod_key(part.cluster, part.pod), part.started_at.timestamp()
            cached = self.pods.peek(pod)
            if cached and cached.recency == (started_at, part.version, part.attempt_id):
                return None
            if not (values := self._complete_values(part, value, now)):
                return None
            attempt = CachedAttempt(part.cluster, part.attempt_id, part.version, started_at, values, status=part.status)
            return self._take(pod, attempt, cached, now)

    def add_retry(self, retry: AttemptRepeated, now: float) -> Taken | None:
        """Add the record of an attempt that repeats an earlier one. ``now`` is Unix time in seconds.

        If memory does not have that attempt, it forgets the pod: its entry is out of date, and the index has both.
        """
        self.namespaces.add([retry.pod.namespace])
        with self._lock:
            pod, started_at = build_pod_key(retry.cluster, retry.pod), retry.started_at.timestamp()
            cached = self.pods.peek(pod)
            recency = (started_at, retry.version, retry.attempt_id)
            if cached and cached.recency == recency:
                return None
            values = cached.values if cached and cached.original_id == retry.repeats else ()
            attempt = CachedAttempt(
                retry.cluster, retry.attempt_id, retry.version, started_at, values, retry, retry.status
            )
            if values or (cached and cached.recency > recency):
                return self._take(pod, attempt, cached, now)
            self.pods.remove(pod)
            return Taken(attempt, cached, is_latest=True, size_bytes=_measure_size(pod, attempt))

    def get(self, cluster: str, namespace: str, name: str, now: float) -> CachedAttempt | None:
        """Get the pod's latest attempt; counts as a use at ``now`` (Unix time in seconds)."""
        return self.pods.get(f"{cluster}/{namespace}/{name}", now)

    def find(self, cluster: str, attempt_id: str) -> CachedAttempt | None:
        """Find the attempt with this id, if it is the latest of its pod. Goes through all of memory."""
        attempts = (pod for pod in self.pods.list_values() if pod.attempt_id == attempt_id)
        return next((attempt for attempt in attempts if attempt.cluster == cluster), None)

    def list_attempts(self, *key: str) -> list[CachedAttempt]:
        """List the attempts of a cluster, of one of its namespaces, or of one pod there. Counts as no use."""
        prefix = "/".join(key)
        return [attempt for pod, attempt in self.pods.list_items() if pod == prefix or pod.startswith(prefix + "/")]

    def list_names(self, cluster: str) -> list[str]:
        """List the names of pods and workloads of a cluster, each with its namespace: ``llm/job/train``."""
        return [*list_names(self.pods, cluster), *list_names(self._workloads, cluster)]

    def _take(self, pod: str, attempt: CachedAttempt, cached: CachedAttempt | None, now: float) -> Taken:
        size_bytes, is_latest = _measure_size(pod, attempt), cached is None or cached.recency < attempt.recency
        if is_latest:
            # A version is the Unix time of the attempt's latest record in microseconds. Records are replayed partition
            # by partition, so the time of arrival says nothing. Never later than now: a pod whose scheduler has a fast
            # clock would never be evicted.
            self.pods.put(pod, attempt, size_bytes, min(attempt.version / 1e6, now))
        return Taken(attempt, cached, is_latest, size_bytes)

    def _complete_values(self, part: AttemptSummarized, value: bytes, now: float) -> tuple[bytes, ...] | None:
        """Collect the values of all parts of the attempt; None while some are missing."""
        if part.parts == 1:
            return (value,)
        key = part.attempt_id, part.version
        values = {**(self._incomplete.peek(key) or {}), part.part: value}
        # All parts of a version name the same number of parts; parts with another number can't be joined.
        if any(number >= part.parts for number in values):
            values = {part.part: value}
        if len(values) < part.parts:
            self._incomplete.put(key, values, sum(map(len, values.values())), now)
            return None
        self._incomplete.remove(key)
        return tuple(values[number] for number in range(part.parts))


def list_names(entries: Lru[str, Any], cluster: str) -> list[str]:
    """List the keys of a cluster, ``cluster/namespace/name``, without the cluster."""
    begin = f"{cluster}/"
    return [key[len(begin) :] for key, _ in entries.list_items() if key.startswith(begin)]


def _measure_size(pod: str, attempt: CachedAttempt) -> int:
    return sum(map(len, attempt.values)) + len(pod) + (_RETRY_BYTES if attempt.retry else 0)
