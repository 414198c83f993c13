"""Checks of the registrations of nodes, at every change and as time passes: writes node events, sets metrics."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.hami.node_checks import (
    PROBLEMS,
    RegistrationProblem,
    VendorRegistration,
    check_registrations,
    find_oldest_handshake,
    list_vendor_registrations,
)
from engine.hami.node_events import to_node_checked
from scheduler.cluster.cluster_api import Object
from scheduler.metrics import Metrics
from scheduler.publish.spool_writer import SpoolWriter

PAUSE_SECONDS: Final = 15.0
"""Pause between two checks, as long as HAMi's (register(), every 15 s)."""
_NODES_PER_SLICE: Final = 200
"""Nodes that are checked before other tasks of the event loop get a turn: well below a millisecond."""


@dataclass(frozen=True, slots=True)
class CheckPolicy:
    handshake_timeout: timedelta = timedelta(seconds=300)
    """A handshake older than this is a problem; zero switches the check off."""


class NodeChecks:
    """Writes an event about a node whenever its problems change, and a last one when it has none left."""

    def __init__(
        self,
        identity: Identity,
        policy: CheckPolicy,
        columns: ClusterColumns,
        event_writer: SpoolWriter,
        clock: Callable[[], datetime],
        metrics: Metrics,
    ) -> None:
        self._identity, self._policy, self._columns, self._events = identity, policy, columns, event_writer
        self._clock, self._metrics = clock, metrics
        self._registrations: dict[str, Sequence[VendorRegistration]] = {}
        self._oldest: dict[str, datetime] = {}
        self._reported: dict[str, list[tuple[str, str]]] = {}

    def on_node(self, node: Object) -> None:
        """Check a node; call it after the columns were updated with the same node."""
        name = node["metadata"]["name"]
        self._registrations[name] = registrations = list_vendor_registrations(node, self._columns.vendors)
        self._oldest.pop(name, None)
        if (oldest := find_oldest_handshake(registrations)) is not None:
            self._oldest[name] = oldest
        self._check(name, self._clock())

    def on_node_deleted(self, name: str) -> None:
        self._registrations.pop(name, None)
        self._oldest.pop(name, None)
        if self._reported.pop(name, None):
            self._report(name, [], self._clock())

    def _check(self, name: str, now: datetime) -> None:
        cause = self._columns.get_cause(name) or ""
        problems = list(check_registrations(self._registrations[name], cause, now, self._policy.handshake_timeout))
        # Without the message, which holds the handshake's age and so differs at every look.
        codes = [(problem.code, problem.vendor) for problem in problems]
        if codes != self._reported.get(name, []):
            self._reported[name] = codes
            self._report(name, problems, now)

    def _report(self, name: str, problems: Sequence[RegistrationProblem], now: datetime) -> None:
        cluster, scheduler = self._identity
        event = to_node_checked(cluster, name, now, problems, scheduler=scheduler)
        self._events.write([event])

    async def check(self) -> None:
        """Check every node and set the metrics. Filter calls are answered in between."""
        names = list(self._registrations)
        for start in range(0, len(names), _NODES_PER_SLICE):
            now = self._clock()
            for name in names[start : start + _NODES_PER_SLICE]:
                # It may have been deleted while other tasks had their turn.
                if name in self._registrations:
                    self._check(name, now)
            await asyncio.sleep(0)
        self._count()

    def _count(self) -> None:
        # A set per node: one problem at two vendors is one node with it.
        counts = Counter(code for codes in self._reported.values() for code in {code for code, _ in codes})
        for code in PROBLEMS:
            self._metrics.nodes_with_problem.labels(code).set(counts[code])
        now = self._clock()
        age = now - min(self._oldest.values(), default=now)
        self._metrics.handshake_age.set(max(age.total_seconds(), 0))

    async def run(self) -> None:
        """Check all nodes every `PAUSE_SECONDS`, until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(PAUSE_SECONDS)
