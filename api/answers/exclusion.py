"""The constraints that together keep a refused pod from every node of its cluster as it is now."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cachetools import LRUCache

from api.index.nodes.last_registrations import read_unregistered
from api.index.reading.client import IndexDownError, OpenSearch
from api.memory.cluster_devices import ClusterDevices
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.suggestions.ask import Ask, Constraint
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.nodes import UnregisteredNodes
from engine.suggestions.trial import Trial
from schemas.events import AttemptSummarized

MAX_ANSWERS: Final = 1_000

_Key = tuple[str, str, int, int]


def _kept() -> LRUCache[_Key, list[Constraint]]:
    return LRUCache(MAX_ANSWERS)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An answer is kept until the cluster's devices or the attempt's record change: at 5,000 nodes it takes 40 ms."""

    devices: ClusterDevices
    index: OpenSearch
    """What nodes registered last that register nothing now."""
    kept: LRUCache[_Key, list[Constraint]] = field(default_factory=_kept)

    async def of(self, attempt: AttemptSummarized) -> list[Constraint] | None:
        """None where the pod is not kept from every node, or the devices or what it asks of them are not known."""
        columns = self.devices.find_columns(attempt.cluster)
        if columns is None or attempt.constraints is None:
            return None
        unregistered = None
        if self._key(attempt) not in self.kept:
            # Not under the lock: others would wait for the index.
            unregistered = await self._unregistered(columns, attempt)
        # The devices are the same as long as the lock is held; who waited for it may find the answer of another.
        async with self.devices.lock:
            key = self._key(attempt)
            if key not in self.kept:
                self.kept[key] = await asyncio.to_thread(_excluded_by, columns, attempt, unregistered)
            return self.kept[key] or None

    def _key(self, attempt: AttemptSummarized) -> _Key:
        return attempt.cluster, attempt.attempt_id, attempt.version, self.devices.revisions[attempt.cluster]

    async def _unregistered(self, columns: ClusterColumns, attempt: AttemptSummarized) -> UnregisteredNodes | None:
        nodes = [name for name in attempt.nodes if columns.get_entry(name) is None]
        try:
            return await read_unregistered(self.index, columns.vendors, attempt.cluster, nodes, datetime.now(UTC))
        except IndexDownError:
            return None


def _excluded_by(
    columns: ClusterColumns, attempt: AttemptSummarized, unregistered: UnregisteredNodes | None
) -> list[Constraint]:
    ask = Ask.from_attempt(attempt.pod, attempt.requests, attempt.constraints or {}, columns.vendors)
    policy = SchedulingPolicy(attempt.node_policy or "binpack", attempt.device_policy or "spread")
    return find_excluding_constraints(Trial(columns, tuple(attempt.nodes), policy), ask, unregistered)
