"""Devices that nodes offer, and observations of the cluster about nodes and pods."""

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import FailFast, Field, model_validator

from ..ids import count_microseconds
from .base import TYPE_PREFIX, Event, Model, PodRef, Request, build_pod_key, build_source
from .columns import Integers, check_lengths
from .device_models import DeviceAllocation
from .field_types import Count, Flag, Moment, Words
from .pods import Owner, PodDescription
from .summaries import PodWait


class NodeEvent(Event):
    node: Annotated[str, Field(min_length=1)]
    """The node's name."""
    observed_at: Moment
    scheduler: str = ""
    """The scheduler that registered it; empty where the cluster itself reports it."""

    @property
    def key(self) -> str:
        return f"{self.cluster}/{self.node}"

    @property
    def time(self) -> datetime:
        return self.observed_at

    @property
    def id(self) -> str:
        kind = self.TYPE.removeprefix(TYPE_PREFIX)
        # With the scheduler: two of them may register the same node at the same time, with different results.
        return f"{self.cluster}/{self.scheduler}/{self.node}/{kind}/{count_microseconds(self.observed_at)}"

    @property
    def source(self) -> str:
        return build_source(self.cluster, self.scheduler) if self.scheduler else f"/clusters/{self.cluster}"


class NodeRegistered(NodeEvent):
    """The devices that a node offers, a column each, and its handshake."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "node.registered.v1"

    registered: Flag
    """False when the scheduler can't use the node's registration; ``cause`` says why."""
    cause: str = ""
    handshake: str = ""
    """The handshake annotation as it stood."""
    uuid: Words
    model: Words
    mode: Words
    """Sharing mode of the device: ``hami-core``, ``mig``, ``mps``."""
    index: Integers
    """The device's number on its node."""
    memory_mib: Integers
    cores_percent: Integers
    """100 is one whole device."""
    slots: Integers
    """Number of containers that may share the device."""
    numa: Integers
    healthy: Annotated[list[Flag], FailFast()]
    cordoned: Words = Field(default_factory=list)
    """UUIDs of those of the devices that an operator excluded (``hami.io/device-cordon``)."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        names = ("model", "mode", "index", "memory_mib", "cores_percent", "slots", "numa", "healthy")
        check_lengths({name: getattr(self, name) for name in names}, len(self.uuid))
        return self


class NodeProblem(Model):
    """One thing that is wrong with how a node registers its devices."""

    code: Annotated[str, Field(min_length=1)]
    """``HandshakeTooOld``, ``HandshakeUnreadable``, ``RegistrationMissing`` or ``RegistrationUnusable``."""
    vendor: str = ""
    """Vendor of the devices, as in requests (``NVIDIA``); empty where the problem concerns the node as a whole."""
    message: str
    """Problem in words, and the next thing to look at."""
    handshake: str = ""
    """The annotation as it stood, where the problem is one of the handshake."""
    handshake_at: Moment | None = None
    """The time in it."""
    is_asked: Flag = False
    """The handshake is the scheduler's question, which device plugins since HAMi v2.8 leave unanswered."""
    allocatable: Count | None = None
    """Number of devices of the vendor that the kubelet offers."""


class NodeChecked(NodeEvent):
    """The problems of a node's registration and handshake, published when they change."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "node.checked.v1"

    problems: list[NodeProblem]
    """Empty when what was wrong before is right again."""


class Condition(Model):
    type: str
    status: str
    """``True``, ``False`` or ``Unknown``."""
    reason: str = ""
    message: str = ""
    last_transition_at: Moment | None = None
    """Time of the last change of the status."""


class NodeObserved(NodeEvent):
    """Capacity, allocatable, conditions and cordon, as the cluster reports them.

    Quantities are as Kubernetes writes them.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "node.observed.v1"

    capacity: dict[str, str] = Field(default_factory=dict)
    allocatable: dict[str, str] = Field(default_factory=dict)
    conditions: list[Condition] = Field(default_factory=list)
    unschedulable: Flag = False
    """The node is cordoned: no further pod is placed there."""


class ObjectProblem(Model):
    """Problem of a pod or a workload that the cluster reports."""

    reason: Annotated[str, Field(min_length=1)]
    """``UnexpectedAdmissionError``, ``FailedCreate``, ``CreateContainerError``, …"""
    message: str
    at: Moment
    """Time of the last report."""
    reported_by: str = ""
    """``kubelet``, ``job-controller``, …; empty where the object itself says it."""


class PodObserved(Event):
    """Phase, node and conditions of a pod, as the cluster reports them."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "pod.observed.v1"

    pod: PodRef
    observed_at: Moment
    phase: str
    """``Pending``, ``Running``, …"""
    node: str = ""
    """Empty before the pod is bound."""
    conditions: list[Condition] = Field(default_factory=list)
    scheduler: str = ""
    """The scheduler that the pod asks for."""
    description: PodDescription | None = None
    allocations: list[DeviceAllocation] = Field(default_factory=list)
    """The devices that its annotations or claims say it holds; empty where they say none."""
    gates: Words = Field(default_factory=list)
    """Its scheduling gates while it waits: no scheduler looks at a pod that has one."""
    requests: list[Request] = Field(default_factory=list)
    """Devices that its containers request while it waits, init containers first."""
    bind_phase: str = ""
    """Bind phase that HAMi writes on the pod: ``allocating``, ``success``, ``failed``; empty where it writes none."""
    started_at: Moment | None = None
    """Start of its first container that is not an init container."""
    problems: list[ObjectProblem] = Field(default_factory=list)
    """Problems that keep it from running on its node."""
    wait: PodWait | None = None
    """Obstacle of a waiting pod, by all objects around it; None where its attempts say how it waits."""
    replaced_by: str = ""
    """Younger pod of the same owner, made after this one was refused by its node; empty while it has none."""
    deleted: Flag = False
    """The pod is gone; the other fields are as they were last known."""

    @property
    def id(self) -> str:
        # Not every source has a UID (scheduler-sniffer has none).
        return f"{self.cluster}/{self.pod.uid or self.pod}/observed/{count_microseconds(self.observed_at)}"

    @property
    def key(self) -> str:
        return build_pod_key(self.cluster, self.pod)

    @property
    def time(self) -> datetime:
        return self.observed_at

    @property
    def source(self) -> str:
        return f"/clusters/{self.cluster}"


class WorkloadObserved(Event):
    """An owner of pods that do not exist: it can't make them, or a queue or group holds it."""

    TYPE: ClassVar[str] = TYPE_PREFIX + "workload.observed.v1"

    namespace: Annotated[str, Field(min_length=1)]
    workload: Owner
    observed_at: Moment
    problem: ObjectProblem
    """Report of its controller; code and sentence of the obstacle where ``wait`` has one."""
    wait: PodWait | None = None
    """Obstacle of a workload that wants pods and has none, by all objects around it; None in a controller's report."""
    is_over: Flag = False
    """It no longer waits for its first pod: it has pods, has ended, or is gone."""
    queue: str = ""
    """Queue that it names; empty where it names none."""
    created_at: Moment | None = None
    pods: Count = 0
    """Number of pods that it wants; 0 where its kind does not say."""

    @property
    def id(self) -> str:
        return f"{self.key}/observed/{count_microseconds(self.observed_at)}"

    @property
    def key(self) -> str:
        return f"{self.cluster}/{self.namespace}/{self.workload}"

    @property
    def time(self) -> datetime:
        return self.observed_at

    @property
    def source(self) -> str:
        return f"/clusters/{self.cluster}"
