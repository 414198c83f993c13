"""Looks at what nodes say about their devices, as it changes and as time passes: node events, metrics, nothing else."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from scheduler.cluster.cluster_api import Object
from scheduler.devices.cluster_state import ClusterColumns
from scheduler.devices.node_checks import (
    PROBLEMS,
    RegistrationProblem,
    VendorRegistration,
    oldest_handshake,
    registration_problems,
    vendor_registrations,
)
from scheduler.metrics import Metrics
from scheduler.publish.spool_writer import SpoolWriter
from schemas.events import NodeChecked, NodeProblem

PAUSE_SECONDS: Final = 15.0
"""As often as HAMi's scheduler looks at its nodes."""
_MAX_HANDSHAKE_CHARACTERS: Final = 200
"""Characters of a handshake that are told: none is longer, and an annotation may be anything."""
_NODES_PER_SLICE: Final = 200
"""Nodes between two looks at what else there is to do: well below a millisecond."""


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
        event_writer: SpoolWriter,
        clock: Callable[[], datetime],
        metrics: Metrics,
    ) -> None:
        self._name, self._policy, self._columns, self._events = name, policy, columns, event_writer
        self._clock, self._metrics = clock, metrics
        self._said: dict[str, Sequence[VendorRegistration]] = {}
        self._oldest: dict[str, datetime] = {}
        self._told: dict[str, list[tuple[str, str]]] = {}

    def node_changed(self, node: Object) -> None:
        """Call it when the columns know the node as it is now."""
        name = node["metadata"]["name"]
        self._said[name] = said = vendor_registrations(node, self._columns.vendors)
        self._oldest.pop(name, None)
        if (oldest := oldest_handshake(said)) is not None:
            self._oldest[name] = oldest
        self._check(name, self._clock())

    def node_gone(self, name: str) -> None:
        self._said.pop(name, None)
        self._oldest.pop(name, None)
        if self._told.pop(name, None):
            self._tell(name, [], self._clock())

    def _check(self, name: str, now: datetime) -> None:
        cause = self._columns.unregistered_cause(name) or ""
        found = list(registration_problems(self._said[name], cause, now, self._policy.handshake_timeout))
        wrong = [(each.code, each.vendor) for each in found]
        if wrong != self._told.get(name, []):
            self._told[name] = wrong
            self._tell(name, found, now)

    def _tell(self, name: str, found: Sequence[RegistrationProblem], now: datetime) -> None:
        told = NodeChecked(node=name, observed_at=now, scheduler=self._name, problems=list(map(_told, found)))
        self._events.write([told])

    async def check(self) -> None:
        """Look at every node, and set the metrics. Filter calls are answered in between."""
        names = list(self._said)
        for start in range(0, len(names), _NODES_PER_SLICE):
            now = self._clock()
            for name in names[start : start + _NODES_PER_SLICE]:
                if name in self._said:
                    self._check(name, now)
            await asyncio.sleep(0)
        self._count()

    def _count(self) -> None:
        counts = Counter(code for wrong in self._told.values() for code in {code for code, _ in wrong})
        for code in PROBLEMS:
            self._metrics.nodes_with_problem.labels(code).set(counts[code])
        now = self._clock()
        age = now - min(self._oldest.values(), default=now)
        self._metrics.handshake_age.set(max(age.total_seconds(), 0))

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self.check()
            await asyncio.sleep(PAUSE_SECONDS)


def _told(found: RegistrationProblem) -> NodeProblem:
    said: dict[str, Any] = {"code": found.code, "vendor": found.vendor, "message": found.message}
    if found.handshake:
        at = found.handshake_at
        # The contract knows no time before 1970.
        known = at if at and at.year >= 1970 else None
        said |= {
            "handshake": found.handshake.text[:_MAX_HANDSHAKE_CHARACTERS],
            "handshake_at": known,
            "is_asked": found.handshake.is_request,
        }
    if found.allocatable is not None:
        said["allocatable"] = max(found.allocatable, 0)
    return NodeProblem(**said)
