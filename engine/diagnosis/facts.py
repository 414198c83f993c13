"""What is known about a pod and its cluster when the diagnosis is made. None is what is not known; see ``unknown``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from schemas.answers.devices import DeviceLog
from schemas.events import AttemptSummarized, Condition, NodeProblem, ObjectProblem, Request

Cause = Literal[
    "index-down", "outside-cluster", "another-cluster", "not-allowed", "api-server-down", "not-recorded", "not-read"
]
"""Why something is not known."""


class Unknown(NamedTuple):
    """``subject`` (``devices``, ``pod``, ``nodes``, …) could not be known; ``detail`` has the words of who refused."""

    subject: str
    cause: Cause
    detail: str = ""


class Evidence(NamedTuple):
    """Where a fact comes from: a record by its id, or an object of the API server by its path."""

    kind: str
    """``attempt``, ``bind``, ``devices``, ``pod``, ``claim``, ``quota``, ``node``, ``event``, ``scheduler``, …"""
    record: str
    at: datetime | None = None
    reported_by: str = ""
    numbers: Mapping[str, int] = MappingProxyType({})
    """By name with the unit."""
    words: str = ""
    """Word for word, where the source has a text."""


class ObservedPod(NamedTuple):
    """The pod, as its object or the latest observation of it has it."""

    source: Evidence
    uid: str = ""
    phase: str = ""
    node: str = ""
    is_gone: bool = False
    is_being_deleted: bool = False
    scheduler: str = ""
    created_at: datetime | None = None
    gates: tuple[str, ...] | None = None
    """The names of its scheduling gates."""
    conditions: Sequence[Condition] = ()
    requests: Sequence[Request] | None = None
    """Devices, as of an attempt."""
    nominated: str = ""
    problems: Sequence[ObjectProblem] = ()
    bind_phase: str = ""
    spec: Mapping[str, Any] | None = None
    """The ``spec`` of its object."""
    labels: Mapping[str, str] = MappingProxyType({})

    def condition(self, kind: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == kind), None)


class Claim(NamedTuple):
    """A PersistentVolumeClaim that the pod names."""

    name: str
    source: Evidence
    phase: str = ""
    """``Pending``, ``Bound``, ``Lost``; empty where the claim does not exist."""
    waits_for_pod: bool | None = None
    """Its storage class binds it when the pod is scheduled. None: not known."""


class Quota(NamedTuple):
    """A ResourceQuota of the pod's namespace, by resource as Kubernetes writes amounts."""

    name: str
    source: Evidence
    hard: Mapping[str, str]
    used: Mapping[str, str]


class HeldLock(NamedTuple):
    """A pod holds the node's lock while its devices are allocated."""

    since: datetime
    holder: str = ""
    """namespace/name; empty where the lock has none, or where it is hidden from the caller."""


class NodeFacts(NamedTuple):
    """One node of the cluster as it is now."""

    name: str
    source: Evidence
    is_ready: bool | None = None
    node: Mapping[str, Any] | None = None
    """Its object: labels, taints, unschedulable."""
    devices: int | None = None
    """How many it registers that can be read; 0 for a node without a registration."""
    problems: Sequence[NodeProblem] | None = None
    lock: HeldLock | None = None


class SchedulerState(NamedTuple):
    """A scheduler of the cluster: it was observed, or attempts of it are recorded."""

    name: str
    source: Evidence
    implementation: str = ""
    """``schedulerlog``, ``HAMi``, ``KAI``, …; empty where only its attempts are known."""
    last_decided_at: datetime | None = None


class OwnerProblem(NamedTuple):
    """Why the owner of the pod could not make it."""

    workload: str
    problem: ObjectProblem
    source: Evidence


@dataclass(frozen=True, slots=True)
class DiagnosisFacts:
    """All of them, as one answer takes them."""

    cluster: str
    namespace: str
    name: str
    now: datetime
    attempt: AttemptSummarized | None = None
    is_latest: bool = True
    """False where an attempt was asked for that others followed: the state of now does not explain it."""
    devices: Sequence[DeviceLog] | None = None
    """As the attempt judged them, of the nodes that were read."""
    pod: ObservedPod | None = None
    claims: Sequence[Claim] | None = None
    quotas: Sequence[Quota] | None = None
    events: Sequence[Evidence] | None = None
    """Kubernetes events about the pod, latest first; ``kind`` is ``event``."""
    nodes: Sequence[NodeFacts] | None = None
    schedulers: Sequence[SchedulerState] | None = None
    owner_problem: OwnerProblem | None = None
    findings: Sequence[Evidence] = ()
    """What was found to be wrong with its attempts and placements; ``kind`` is ``finding``."""
    unknown: Sequence[Unknown] = ()

    def unknown_of(self, *subjects: str) -> tuple[Unknown, ...]:
        """What could not be known of these subjects."""
        return tuple(unknown for unknown in self.unknown if unknown.subject in subjects)
