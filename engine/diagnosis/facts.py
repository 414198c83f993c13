"""Facts about a pod and its cluster at the time of the diagnosis. None is a missing fact; ``unknown`` has the cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.diagnosis.evidence import Cause as Cause
from engine.diagnosis.evidence import Evidence as Evidence
from engine.diagnosis.evidence import Unknown as Unknown
from engine.diagnosis.logged_facts import LoggedFact
from engine.diagnosis.outcome import FoundObstacle
from schemas.events import AttemptSummarized, Condition, NodeProblem, ObjectProblem, PickedDevice, Request

if TYPE_CHECKING:
    # What reads a log alone judges nothing, and would wait for its imports.
    from engine.hami.vendors import Vendors
    from engine.snapshot.case_objects import CaseObjects
    from schemas.answers.attempts import DeviceLog


class PodOnCluster(NamedTuple):
    """The pod as its object or its latest observation describes it."""

    source: Evidence
    uid: str = ""
    phase: str = ""
    node: str = ""
    is_gone: bool = False
    is_being_deleted: bool = False
    scheduler: str = ""
    created_at: datetime | None = None
    gates: tuple[str, ...] | None = None
    """Names of its scheduling gates."""
    conditions: Sequence[Condition] = ()
    requests: Sequence[Request] | None = None
    """Requested devices, as in an attempt."""
    nominated: str = ""
    problems: Sequence[ObjectProblem] = ()
    bind_phase: str = ""
    spec: Mapping[str, Any] | None = None
    """The ``spec`` of its object."""
    labels: Mapping[str, str] = MappingProxyType({})
    annotations: Mapping[str, str] = MappingProxyType({})
    reason: str = ""
    """Reason of its end, as the kubelet or a controller wrote it into the status: ``Evicted``, ``OutOfcpu``."""
    message: str = ""
    """Message next to the reason."""
    has_run: bool | None = None
    """True if one of its containers has started; None if not reported."""
    owners: tuple[str, ...] = ()
    """Owners as ``Kind/name``, the controller first."""
    devices: Sequence[PickedDevice] = ()
    """Devices that it holds, by its annotations or its claims."""

    def find_condition(self, kind: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == kind), None)


class Claim(NamedTuple):
    """A PersistentVolumeClaim that the pod names."""

    name: str
    source: Evidence
    phase: str = ""
    """``Pending``, ``Bound``, ``Lost``; empty if the claim does not exist."""
    waits_for_pod: bool | None = None
    """True if its storage class binds it when the pod is scheduled; None if not reported."""
    volume: str = ""
    """Name of its PersistentVolume."""
    storage_class: str = ""
    deleted_at: datetime | None = None
    """Time since which it is being deleted."""
    finalizers: tuple[str, ...] = ()


class Quota(NamedTuple):
    """A ResourceQuota of the pod's namespace, by resource as Kubernetes writes amounts."""

    name: str
    source: Evidence
    hard: Mapping[str, str]
    used: Mapping[str, str]


class HeldLock(NamedTuple):
    """Lock of a node, which a pod holds while its devices are allocated."""

    since: datetime
    holder: str = ""
    """namespace/name; empty if the lock names no holder, or if it is hidden from the caller."""


class NodeFacts(NamedTuple):
    """State of one node of the cluster now."""

    name: str
    source: Evidence
    is_ready: bool | None = None
    node: Mapping[str, Any] | None = None
    """Object of the node: labels, taints, unschedulable."""
    devices: int | None = None
    """Number of readable devices in its registration; 0 for a node without a registration."""
    problems: Sequence[NodeProblem] | None = None
    lock: HeldLock | None = None


class SchedulerState(NamedTuple):
    """A scheduler of the cluster: it was observed, or its attempts are recorded."""

    name: str
    source: Evidence
    implementation: str = ""
    """``schedulerlog``, ``HAMi``, ``KAI``, …; empty if only its attempts are reported."""
    last_decided_at: datetime | None = None


class OwnerProblem(NamedTuple):
    """Problem for which the owner of the pod could not create it."""

    workload: str
    problem: ObjectProblem
    source: Evidence


class JudgedGang(NamedTuple):
    """Waiting members of a gang judged one after the other, each with the earlier ones in place."""

    members: int
    """Number of members that have to be placed together."""
    fitting: int
    """Number of them that fit before the first that does not."""
    member: str
    """Name of that member."""
    obstacle: FoundObstacle
    """Its main obstacle."""


@dataclass(frozen=True, slots=True)
class DiagnosisFacts:
    """Facts of one answer."""

    cluster: str
    namespace: str
    name: str
    now: datetime
    attempt: AttemptSummarized | None = None
    is_latest: bool = True
    """False if later attempts followed the requested one: the present state does not explain it."""
    devices: "Sequence[DeviceLog] | None" = None
    """Devices of the nodes that were read, as the attempt judged them."""
    pod: PodOnCluster | None = None
    claims: Sequence[Claim] | None = None
    quotas: Sequence[Quota] | None = None
    events: Sequence[Evidence] | None = None
    """Kubernetes events about the pod, latest first; ``kind`` is ``event``."""
    nodes: Sequence[NodeFacts] | None = None
    schedulers: Sequence[SchedulerState] | None = None
    owner_problem: OwnerProblem | None = None
    objects: "CaseObjects | None" = None
    """Everything that was read of the cluster; None where only the facts above were read."""
    logged: Sequence[LoggedFact] = ()
    """Facts of the scheduler's log, in the order of their times."""
    log_ended_at: datetime | None = None
    """Time of the log's last line; None where the facts do not come from a log alone. Nothing later is known."""
    winner: "tuple[str, int | None] | None" = None
    """Pod that took the place of this one, as namespace/name with its priority; None where no record names it."""
    excluded_by: str = ""
    """Reason for which no device of the cluster suits the pod, whatever else its nodes refuse it for; empty if there is
    none, or if it is not known."""
    findings: Sequence[Evidence] = ()
    """Contradictions in the pod's attempts and placements; ``kind`` is ``finding``."""
    unknown: Sequence[Unknown] = ()
    cluster_nodes: int = 0
    """Nodes of the cluster, if more are there than the attempt was offered; 0 if not known."""
    vendors: "Vendors" = ()
    """Device table of the cluster, whose names the texts take; HAMi's own names without it."""
    gang: JudgedGang | None = None
    """Waiting members of the pod's gang, worked out on the nodes; None if they were not judged or all of them fit."""

    def select_unknown(self, *subjects: str) -> tuple[Unknown, ...]:
        """Select the missing facts about these subjects."""
        return tuple(unknown for unknown in self.unknown if unknown.subject in subjects)
