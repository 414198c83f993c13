"""The constraints that together keep a refused pod from every node of its cluster as it is now."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from cachetools import LRUCache

from api.memory.cluster_devices import ClusterDevices
from diagnosis.suggestions.ask import Ask, Constraint
from diagnosis.suggestions.exclusion import excluding_constraints
from diagnosis.suggestions.trial import Trial
from fit.devices.cluster_state import ClusterColumns
from fit.judge.decision import SchedulingPolicy
from schemas.events import AttemptSummarized

MAX_ANSWERS: Final = 1_000

_Key = tuple[str, str, int, int]


def _kept() -> LRUCache[_Key, list[Constraint]]:
    return LRUCache(MAX_ANSWERS)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An answer is kept until the cluster's devices or the attempt's record change: at 5,000 nodes it takes 40 ms."""

    devices: ClusterDevices
    kept: LRUCache[_Key, list[Constraint]] = field(default_factory=_kept)

    async def of(self, attempt: AttemptSummarized) -> list[Constraint] | None:
        """None where the pod is not kept from every node, or the devices or what it asks of them are not known."""
        columns = self.devices.known(attempt.cluster)
        if columns is None or attempt.constraints is None:
            return None
        # The devices are the same as long as the lock is held; who waited for it may find the answer of another.
        async with self.devices.lock:
            key = (attempt.cluster, attempt.attempt_id, attempt.version, self.devices.revisions[attempt.cluster])
            if key not in self.kept:
                self.kept[key] = await asyncio.to_thread(_excluded_by, columns, attempt)
            return self.kept[key] or None


def _excluded_by(columns: ClusterColumns, attempt: AttemptSummarized) -> list[Constraint]:
    ask = Ask.of_attempt(attempt.pod, attempt.requests, attempt.constraints or {}, columns.vendors)
    policy = SchedulingPolicy(attempt.node_policy or "binpack", attempt.device_policy or "spread")
    return excluding_constraints(Trial(columns, tuple(attempt.nodes), policy), ask)
