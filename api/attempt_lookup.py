"""The latest attempt of a pod: from memory while that is fresh, else from the index, whichever is newer."""

import time
from dataclasses import dataclass

from api.index.attempt_reader import latest_of_pod
from api.index.client import IndexDownError, OpenSearch
from api.memory.attempts_consumer import TopicState
from api.memory.latest_attempts import Held, LatestAttempts
from api.metrics import Metrics
from schemas.events import AttemptSummarized


@dataclass(frozen=True, slots=True)
class Stored:
    """An attempt as the index told it."""

    whole: AttemptSummarized
    whole_id: str
    """The attempt that has the detail: itself, unless it repeats another."""

    @property
    def attempt_id(self) -> str:
        return self.whole.attempt_id

    @property
    def version(self) -> int:
        return self.whole.version

    @property
    def age_order(self) -> tuple[float, int, str]:
        return self.whole.started_at.timestamp(), self.version, self.attempt_id

    def summary(self) -> AttemptSummarized:
        return self.whole


Known = Held | Stored


@dataclass(frozen=True, slots=True)
class Attempts:
    memory: LatestAttempts
    topic: TopicState
    index: OpenSearch
    metrics: Metrics

    def held(self, namespace: str, name: str) -> Held | None:
        return self.memory.get(namespace, name, time.time())

    def fresh(self, namespace: str, name: str) -> Held | None:
        """What memory knows of the pod while it is ahead of the index; None while it may be behind."""
        return self.held(namespace, name) if self.topic.is_following(time.monotonic()) else None

    async def latest(self, namespace: str, name: str) -> Known | None:
        """Raises ``IndexDownError`` for a pod that is not in memory while the index is down."""
        held = self.held(namespace, name)
        self.metrics.lookups.labels("hit" if held else "miss").inc()
        if held and self.topic.is_following(time.monotonic()):
            return held
        # While the brokers are away, the memory may be behind the index.
        try:
            found = await latest_of_pod(self.index, namespace, name)
        except IndexDownError:
            if held:
                return held
            raise
        known = [each for each in (held, Stored(*found) if found else None) if each]
        return max(known, key=lambda each: each.age_order, default=None)
