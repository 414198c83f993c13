"""Contradictions between a placement and the cluster that its attempt by itself does not show: pure.

========================  ============================================================================================
``OutsidePool``           the node is in none of the pools that its namespace may use
``StaleHandshake``        the node's handshake was too old when the node was chosen
``UnusableRegistration``  the node's registration was missing or could not be used when the node was chosen
``MemoryChanged``         a device was registered with other memory between the filter and the bind, or no longer
``BoundNowhere``          a bind was reported, and the cluster showed the pod later on no node, or on another one
``BindUnreported``        the pod is on the node that was chosen for it, and no scheduler reported a bind
========================  ============================================================================================

The compared events come on several topics, so they arrive in any order. ``PlacementAuditor`` keeps them and audits a
placement when everything about its time has been read. The same records give the same findings with the same ids.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.summaries.node_history import NodeHistory, NodeKey
from schemas.codec.records import format_rfc3339
from schemas.events import (
    AttemptEvent,
    FindingReported,
    NodeChecked,
    NodeProblem,
    NodeRegistered,
    PodRef,
    Request,
    build_pod_key,
)
from schemas.ids import count_microseconds

OUTSIDE_POOL: Final = "OutsidePool"
STALE_HANDSHAKE: Final = "StaleHandshake"
UNUSABLE_REGISTRATION: Final = "UnusableRegistration"
MEMORY_CHANGED: Final = "MemoryChanged"
BOUND_NOWHERE: Final = "BoundNowhere"
BIND_UNREPORTED: Final = "BindUnreported"

GRACE: Final = timedelta(seconds=30)
"""Time after a bind in which an observation may still be from before it: watches lag, clocks differ."""
SOON: Final = timedelta(minutes=5)
"""Time in which a pod may still appear: then it was bound after all, and the reported time of the bind was wrong."""

_FINDING_OF: Final = {
    # ``HandshakeUnreadable`` is missing on purpose: HAMi takes a time that it can't read for a healthy node.
    "HandshakeTooOld": STALE_HANDSHAKE,
    "RegistrationMissing": UNUSABLE_REGISTRATION,
    "RegistrationUnusable": UNUSABLE_REGISTRATION,
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A reported bind. bound_at: its end. vendors: those of the requested devices; empty if not reported."""

    cluster: str
    attempt_id: str
    pod: PodRef
    scheduler: str
    started_at: datetime
    node: str
    bound_at: datetime
    devices: tuple[str, ...] = ()
    vendors: frozenset[str] = frozenset()

    @property
    def node_key(self) -> NodeKey:
        return NodeKey(self.cluster, self.node)

    @property
    def pod_key(self) -> str:
        """Name of the pod among those of all clusters."""
        return build_pod_key(self.cluster, self.pod)

    @property
    def bind_evidence(self) -> str:
        """The event that reports the bind, as evidence."""
        bind = f"{self.attempt_id}/bind/{count_microseconds(self.bound_at)}"
        return f"{bind}: bound to {self.node} at {format_rfc3339(self.bound_at)}"


def to_placed(
    attempt: AttemptEvent, node: str, bound_at: datetime, devices: Iterable[str], requests: Iterable[Request]
) -> Placed:
    """Build the reported bind of an attempt; `devices` and `requests` are those of the attempt's summary."""
    vendors = frozenset(request.vendor for request in requests if request.count)
    uuids = tuple(dict.fromkeys(devices))
    return Placed(
        attempt.cluster,
        attempt.attempt_id,
        attempt.pod,
        attempt.scheduler,
        attempt.started_at,
        node,
        bound_at,
        uuids,
        vendors,
    )


@dataclass(frozen=True, slots=True)
class Pools:
    """Rules about node pools. of: a node's pool, empty if it has none. allowed: pools that a namespace may use, None if
    any."""

    get_pool: Callable[[str], str]
    list_allowed: Callable[[str], frozenset[str] | None]


def audit_pool(placed: Placed, pools: Pools) -> Iterator[FindingReported]:
    expected, pool = pools.list_allowed(placed.pod.namespace), pools.get_pool(placed.node)
    # None means that no rule names the namespace; an empty set, that it may use no pool.
    if expected is not None and pool not in expected:
        may = ", ".join(sorted(expected)) or "no pool"
        sentence = f"{placed.pod.namespace} may use {may}; {placed.node} is in {pool or 'no pool'}"
        numbers = {"devices": len(placed.devices), "expected_pools": len(expected)}
        yield build_finding(placed, OUTSIDE_POOL, numbers, [sentence, placed.bind_evidence])


def audit_registration(placed: Placed, nodes: NodeHistory) -> Iterator[FindingReported]:
    """Find problems of the node when it was chosen, by the latest check of each source; only for pods with devices."""
    if not placed.devices and not placed.vendors:
        return
    by_finding: dict[str, list[tuple[NodeChecked, NodeProblem]]] = {}
    for check in nodes.iterate_latest_checks(placed.node_key, placed.started_at):
        for problem in check.problems:
            if (name := _FINDING_OF.get(problem.code)) and _applies_to(problem, placed):
                by_finding.setdefault(name, []).append((check, problem))
    for name, problems in sorted(by_finding.items()):
        numbers = _measure_ages(placed, problems)
        evidence = [f"{check.id}: {problem.message}" for check, problem in problems]
        yield build_finding(placed, name, numbers, [*evidence, placed.bind_evidence])


def _applies_to(problem: NodeProblem, placed: Placed) -> bool:
    # A stale handshake of another vendor's plugin does not concern this pod's devices.
    if problem.vendor and placed.vendors and problem.vendor not in placed.vendors:
        return False
    # Device plugins since HAMi v2.8 never answer the handshake; devices that the kubelet offers exist nevertheless.
    return not (problem.code == "HandshakeTooOld" and problem.is_asked and problem.allocatable)


def _measure_ages(placed: Placed, problems: Iterable[tuple[NodeChecked, NodeProblem]]) -> dict[str, int]:
    """Measure two ages in seconds before the attempt began: of the oldest handshake, and of the first check that found
    the problem."""
    shaken = [problem.handshake_at for _, problem in problems if problem.handshake_at]
    wrong_since = min(check.observed_at for check, _ in problems)
    numbers = {"wrong_for_seconds": _to_seconds(placed.started_at - wrong_since)}
    return numbers | ({"handshake_age_seconds": _to_seconds(placed.started_at - min(shaken))} if shaken else {})


def audit_memory(placed: Placed, nodes: NodeHistory) -> Iterator[FindingReported]:
    """Find devices that the scheduler registered otherwise after it had judged them and before they were bound."""
    before, after = nodes.find_registrations(placed.node_key, placed.scheduler, placed.started_at, placed.bound_at)
    if before is None or after is None:
        return
    judged, registered = _map_memory(before), _map_memory(after)
    for uuid in placed.devices:
        if uuid in judged and registered.get(uuid) != judged[uuid]:
            numbers = {"memory_judged_mib": judged[uuid], "memory_registered_mib": registered.get(uuid, 0)}
            change = "registered with other memory" if uuid in registered else "no longer registered"
            yield build_finding(
                placed,
                MEMORY_CHANGED,
                numbers,
                [
                    f"{before.id}: as it was judged at {format_rfc3339(placed.started_at)}",
                    f"{after.id}: {change} at {format_rfc3339(after.observed_at)}",
                    placed.bind_evidence,
                ],
                uuid,
            )


def _map_memory(event: NodeRegistered) -> Mapping[str, int]:
    return dict(zip(event.uuid, event.memory_mib.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Sighting:
    """A pod seen on a node; `node` is empty before the pod is bound."""

    id: str
    uid: str
    node: str
    seen_at: datetime


def find_sighting_elsewhere(placed: Placed, sightings: Iterable[Sighting]) -> Sighting | None:
    """Return the first sighting of the pod away from the node that it was bound to, unless it was there soon after.

    Only sightings with the pod's UID count: without a UID a sighting may be of the next pod of that name.
    """
    same = [sighting for sighting in sightings if sighting.uid and sighting.uid == placed.pod.uid]
    # The watch may deliver the state from before the bind after it.
    other = [
        sighting for sighting in same if sighting.node != placed.node and sighting.seen_at > placed.bound_at + GRACE
    ]
    first = min(other, key=lambda sighting: (sighting.seen_at, sighting.id), default=None)
    if first and any(sighting.node == placed.node and sighting.seen_at <= first.seen_at + SOON for sighting in same):
        return None
    return first


def report_bound_nowhere(placed: Placed, seen: Sighting) -> FindingReported:
    where = f"on {seen.node}" if seen.node else "on no node"
    numbers = {"seen_after_seconds": _to_seconds(seen.seen_at - placed.bound_at)}
    return build_finding(
        placed, BOUND_NOWHERE, numbers, [placed.bind_evidence, f"{seen.id}: {where} at {format_rfc3339(seen.seen_at)}"]
    )


def report_unreported_bind(chosen: Placed, sighting: Sighting) -> FindingReported:
    """Report a bind that no scheduler reported. `chosen`: an attempt without a reported bind; its `bound_at` is the end
    of its filter."""
    evidence = [
        f"{chosen.attempt_id}/concluded: {chosen.node} was chosen at {format_rfc3339(chosen.bound_at)}",
        f"{sighting.id}: on {sighting.node} at {format_rfc3339(sighting.seen_at)}",
    ]
    numbers = {"seen_after_seconds": _to_seconds(sighting.seen_at - chosen.bound_at), "devices": len(chosen.devices)}
    return build_finding(chosen, BIND_UNREPORTED, numbers, evidence)


def build_finding(
    placed: Placed, name: str, numbers: Mapping[str, int], evidence: Iterable[str], device: str = ""
) -> FindingReported:
    """Build a finding at the time of the bind, whenever it is noticed: so the same finding has the same id.

    ``evidence`` is about the pod itself and its node.
    """
    lines = list(evidence)
    return FindingReported.model_construct(
        cluster=placed.cluster,
        attempt_id=placed.attempt_id,
        pod=placed.pod,
        scheduler=placed.scheduler,
        started_at=placed.started_at,
        finding=name,
        found_at=placed.bound_at,
        node=placed.node,
        device=device,
        numbers=dict(numbers),
        evidence=lines,
        evidence_pods=[str(placed.pod)] * len(lines),
    )


def _to_seconds(time: timedelta) -> int:
    return time // timedelta(seconds=1)
