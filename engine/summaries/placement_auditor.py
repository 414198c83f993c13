"""Auditor of placements, once everything that was reported about their time has been read: pure but for its memory.

    binds, sightings of pods, checks of nodes ──▶ PlacementAuditor ──settle(until)──▶ findings, each once

They come from several topics in any order, and again after a restart. The caller passes to ``settle`` the time up to
which everything has been read; what was seen by then decides, whatever came first.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Final

from engine.summaries.node_history import NodeHistory, NodeKey
from engine.summaries.placement_audit import (
    SOON,
    Placed,
    Pools,
    Sighting,
    audit_memory,
    audit_pool,
    audit_registration,
    find_sighting_elsewhere,
    report_bound_nowhere,
)
from schemas.events import FindingReported, NodeChecked, NodeRegistered, PodObserved

LATE: Final = timedelta(seconds=15)
"""Largest delay of a record behind others of its time: spools are sent within milliseconds, clocks differ."""
REMEMBERED: Final = timedelta(hours=1)
"""Time after which a bind that no event contradicted is believed; the history of nodes lasts as long."""
REMEMBERED_PODS: Final = 50_000
REMEMBERED_FINDINGS: Final = 100_000
_MAX_SIGHTINGS: Final = 32


@dataclass(slots=True)
class _Pod:
    """Facts about the pods of one name in one cluster."""

    placed: dict[str, Placed] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)
    """Attempts whose nodes the auditor has checked."""
    sightings: dict[str, Sighting] = field(default_factory=dict)
    latest: datetime | None = None


class PlacementAuditor:
    """Auditor of placements. `pools` None: every node is allowed."""

    def __init__(self, pools: Pools | None = None, max_pods: int = REMEMBERED_PODS) -> None:
        self._pools, self._max_pods = pools, max_pods
        self._nodes = NodeHistory()
        self._loaded: set[NodeKey] = set()
        self._pods: OrderedDict[str, _Pod] = OrderedDict()
        self._due: list[tuple[datetime, str]] = []
        self._reported: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def binds(self) -> int:
        return sum(len(pod.placed) for pod in self._pods.values())

    def see_bind(self, placed: Placed) -> None:
        # Pods are stored by name, because a bind may lack the UID; sightings of other pods of that name drop out later.
        pod = self._touch_pod(placed.pod_key, placed.bound_at)
        if pod.placed.get(placed.attempt_id) != placed:
            pod.placed[placed.attempt_id] = placed
            # The same pod may be due several times; a heap has no cheap removal, and auditing it again finds nothing
            # new.
            heappush(self._due, (placed.bound_at + LATE, placed.pod_key))

    def see_pod(self, event: PodObserved) -> None:
        # A deletion says nothing about the present, and a running pod has a node even if the source does not report it.
        if event.deleted or not event.pod.uid or not (event.node or event.phase == "Pending"):
            return
        pod = self._touch_pod(event.key, event.observed_at)
        pod.sightings[event.id] = Sighting(event.id, event.pod.uid, event.node, event.observed_at)
        if len(pod.sightings) > _MAX_SIGHTINGS:
            del pod.sightings[min(pod.sightings, key=lambda id_: pod.sightings[id_].seen_at)]
        if pod.placed:
            heappush(self._due, (event.observed_at + LATE, event.key))

    def see_node(self, event: NodeChecked | NodeRegistered) -> None:
        self._nodes.see(event)

    def list_unloaded_nodes(self, until: datetime) -> set[NodeKey]:
        """List nodes of due placements whose earlier events have not been loaded: call `load_node` for them."""
        due = (self._pods.get(name) for due_at, name in self._due if due_at <= until)
        binds = (bind for pod in due if pod for bind in pod.placed.values() if bind.attempt_id not in pod.judged)
        return {bind.node_key for bind in binds} - self._loaded

    def load_node(self, node: NodeKey, events: Iterable[NodeChecked | NodeRegistered]) -> None:
        """Add all earlier events about the node."""
        self._loaded.add(node)
        for event in events:
            self._nodes.see(event)

    def mark_reported(self, ids: Iterable[str]) -> None:
        """Mark findings that an earlier run has published already, by their ids."""
        self._reported |= dict.fromkeys(ids)

    def _touch_pod(self, name: str, seen_at: datetime) -> _Pod:
        pod = self._pods.setdefault(name, _Pod())
        pod.latest = max(pod.latest or seen_at, seen_at)
        self._pods.move_to_end(name)
        return pod

    def settle(self, until: datetime) -> list[FindingReported]:
        """Return new findings, now that everything up to ``until`` has been read; none twice."""
        findings: dict[str, FindingReported] = {}
        while self._due and self._due[0][0] <= until:
            pod = self._pods.get(heappop(self._due)[1])
            if pod:
                findings |= {finding.id: finding for finding in self._judge(pod, until - LATE)}
        self._forget(until - REMEMBERED)
        # Sorted by id: a replay after a crash publishes in the same order.
        new = [finding for _, finding in sorted(findings.items()) if finding.id not in self._reported]
        self.mark_reported(finding.id for finding in new)
        return new

    def _judge(self, pod: _Pod, until: datetime) -> Iterator[FindingReported]:
        sightings = [sighting for sighting in pod.sightings.values() if sighting.seen_at <= until]
        for placed in [bind for bind in pod.placed.values() if bind.bound_at <= until]:
            if placed.attempt_id not in pod.judged:
                pod.judged.add(placed.attempt_id)
                yield from self._audit_node(placed)
            if (seen := find_sighting_elsewhere(placed, sightings)) and seen.seen_at + SOON <= until:
                yield report_bound_nowhere(placed, seen)
            elif seen:
                heappush(self._due, (seen.seen_at + SOON + LATE, placed.pod_key))

        for old in [id_ for id_ in pod.judged if pod.placed[id_].bound_at < until - REMEMBERED]:
            # Without this the memory of a name that is used again and again would grow.
            del pod.placed[old]
            pod.judged.remove(old)

    def _audit_node(self, placed: Placed) -> Iterator[FindingReported]:
        if self._pools:
            yield from audit_pool(placed, self._pools)
        yield from audit_registration(placed, self._nodes)
        yield from audit_memory(placed, self._nodes)

    def _forget(self, before: datetime) -> None:
        self._nodes.forget(before)
        while self._pods:
            name, pod = next(iter(self._pods.items()))
            if len(self._pods) <= self._max_pods and pod.latest and pod.latest >= before:
                break
            del self._pods[name]
        while len(self._reported) > REMEMBERED_FINDINGS:
            self._reported.popitem(last=False)
