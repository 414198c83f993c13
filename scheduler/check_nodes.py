"""Looks at what nodes say about their devices, as it changes and as time passes: node events, metrics, nothing else."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler.cluster.cluster_api import Object
from scheduler.devices.columns import ClusterColumns
from scheduler.devices.node_checks import PROBLEMS, Problem, Registering, oldest_age, problems_of, registerings
from scheduler.metrics import Metrics
from scheduler.service import Teller
from schemas.events import NodeChecked, NodeProblem

PAUSE_SECONDS: Final = 15.0
"""As often as HAMi's scheduler looks at its nodes."""


@dataclass(frozen=True, slots=True)
class CheckPolicy:
    handshake_timeout: timedelta = timedelta(seconds=300)
    """Zero: a handshake is never too old."""


class NodeChecks:
    """A node is told of when what is wrong with it becomes other than it was, and once more when nothing is."""

    def __init__(
        self,
        name: str,
        policy: CheckPolicy,
        columns: ClusterColumns,
        teller: Teller,
        clock: Callable[[], datetime],
        metrics: Metrics,
    ) -> None:
        self._name, self._policy, self._columns, self._teller = name, policy, columns, teller
        self._clock, self._metrics = clock, metrics
        self._said: dict[str, Sequence[Registering]] = {}
        self._told: dict[str, list[tuple[str, str]]] = {}

    def node_changed(self, node: Object) -> None:
        """Call it when the columns know the node as it is now."""
        name = node["metadata"]["name"]
        self._said[name] = registerings(node, self._columns.vendors)
        self._check(name, self._clock())

    def node_gone(self, name: str) -> None:
        self._said.pop(name, None)
        if self._told.pop(name, None):
            self._tell(name, [], self._clock())

    def _check(self, name: str, now: datetime) -> list[Problem]:
        cause = self._columns.unregistered_cause(name) or ""
        found = list(problems_of(self._said[name], cause, now, self._policy.handshake_timeout))
        wrong = [(each.code, each.vendor) for each in found]
        if wrong != self._told.get(name, []):
            self._told[name] = wrong
            self._tell(name, found, now)
        return found

    def _tell(self, name: str, found: Sequence[Problem], now: datetime) -> None:
        problems = [NodeProblem(code=each.code, vendor=each.vendor, message=each.message) for each in found]
        self._teller.tell([NodeChecked(node=name, observed=now, scheduler=self._name, problems=problems)])

    def check(self) -> None:
        """Look at every node, and set the metrics."""
        now = self._clock()
        counts = Counter(code for name in self._said for code in {each.code for each in self._check(name, now)})
        for code in PROBLEMS:
            self._metrics.nodes_with_problem.labels(code).set(counts[code])
        oldest = max((oldest_age(said, now) for said in self._said.values()), default=timedelta())
        self._metrics.handshake_age.set(oldest.total_seconds())

    async def run(self) -> None:
        """Look for ever."""
        while True:
            self.check()
            await asyncio.sleep(PAUSE_SECONDS)
