"""Lookup of the latest attempt of a pod: in memory while that is current, or else in memory and in the index."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from api.index.attempts.attempt_queries import PodName
from api.index.attempts.attempt_reader import read_attempt, read_latest_attempt
from api.index.reading.client import IndexDownError, OpenSearch
from api.memory.latest_attempts import CachedAttempt, LatestAttempts
from api.memory.topic_follower import TopicState
from api.metrics import Metrics
from schemas.events import AttemptSummarized

LOOK_SECONDS: Final = 0.02
"""Interval in which a request that waits for the index looks for the pod in memory, which the topic may fill."""


@dataclass(frozen=True, slots=True)
class IndexedAttempt:
    """Attempt from the index, with the attributes of ``CachedAttempt``."""

    indexed_summary: AttemptSummarized
    original_id: str
    """Attempt that is stored complete: this one, or the one that it repeats."""

    @property
    def attempt_id(self) -> str:
        return self.indexed_summary.attempt_id

    @property
    def version(self) -> int:
        return self.indexed_summary.version

    @property
    def recency(self) -> tuple[float, int, str]:
        """Key that is greater for a newer attempt."""
        return self.indexed_summary.started_at.timestamp(), self.version, self.attempt_id

    def read_summary(self) -> AttemptSummarized:
        return self.indexed_summary


StoredAttempt = CachedAttempt | IndexedAttempt


@dataclass(frozen=True, slots=True)
class AttemptLookup:
    """Lookup in memory and index; docs/decisions/0008 says when in which."""

    memory: LatestAttempts
    topic: TopicState
    index: OpenSearch
    metrics: Metrics

    def find_current_in_memory(self, pod: PodName) -> CachedAttempt | None:
        """Find the pod's attempt in memory; None without one, or while memory may be behind the index."""
        return self._find_cached(pod) if self._is_memory_current() else None

    def check_latest(self, pod: PodName, recency: tuple[float, int, str]) -> bool:
        """Check whether the attempt of this recency is still the pod's latest in memory, and count that lookup."""
        cached = self.find_current_in_memory(pod)
        is_latest = cached is not None and cached.recency == recency
        if is_latest:
            self.metrics.hits.inc()
        return is_latest

    async def find_latest(self, pod: PodName) -> StoredAttempt | None:
        """Find the newer of the attempts in memory and index; None for a pod without any.

        Raises ``IndexDownError`` for a pod that is not in memory while the index is down.
        """
        cached = self._find_cached(pod)
        (self.metrics.hits if cached else self.metrics.misses).inc()
        if cached and self._is_memory_current():
            return cached
        # While this process can't read Kafka, the index may get an attempt that memory lacks.
        reading = asyncio.ensure_future(read_latest_attempt(self.index, pod))
        try:
            while not (await asyncio.wait({reading}, timeout=LOOK_SECONDS))[0]:
                # An index that hangs would hold the request until its time-out, while the topic has the pod.
                if arrived := self.find_current_in_memory(pod):
                    return arrived
            indexed = await reading
        # An attempt that may be out of date is a better answer than none.
        except IndexDownError:
            if cached:
                return cached
            raise
        finally:
            reading.cancel()
        stored = [attempt for attempt in (cached, IndexedAttempt(*indexed) if indexed else None) if attempt]
        return max(stored, key=lambda attempt: attempt.recency, default=None)

    async def find_by_id(self, cluster: str, attempt_id: str) -> StoredAttempt | None:
        """Find the attempt with this id, or with a report of this id; None if neither memory nor index has it.

        Raises ``IndexDownError`` for an attempt that is not in memory while the index is down.
        """
        # Memory has the latest version; the index may have an older one for about a second.
        cached = self.memory.find(cluster, attempt_id)
        if cached and self._is_memory_current():
            return cached
        try:
            indexed = await read_attempt(self.index, cluster, attempt_id)
        except IndexDownError:
            if cached:
                return cached
            raise
        stored = [attempt for attempt in (cached, IndexedAttempt(*indexed) if indexed else None) if attempt]
        return max(stored, key=lambda attempt: attempt.version, default=None)

    def _find_cached(self, pod: PodName) -> CachedAttempt | None:
        return self.memory.get(*pod, time.time())

    def _is_memory_current(self) -> bool:
        return self.topic.is_following(time.monotonic())
