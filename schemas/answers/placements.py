"""The JSON that the API gives to people about placements: what is wrong with them, who held what, what was seen."""

from typing import Final

from pydantic import Field

from ..events import Condition, DeviceAllocation, NodeProblem, ObjectProblem, PodDescription
from .base import NUMBERS, Answer


class Finding(Answer):
    """Contradiction in one attempt or placement, with its proof."""

    finding: str
    found_at: str
    scheduler: str
    namespace: str
    name: str
    pod_uid: str
    attempt_id: str
    started_at: str = Field(description="Start of the attempt.")
    node: str
    device: str = Field(description="Empty where it is about the whole node.")
    numbers: dict[str, int] = Field(description=f"Numbers that prove it. {NUMBERS}")
    evidence: list[str] = Field(description="The lines or events that say so.")
    evidence_pods: list[str] = Field(
        description="The pod that each line of `evidence` is about, NAMESPACE/NAME. Empty where that is not recorded."
    )
    attempt: str = Field(description="The path of the attempt.")
    schedulerlog: str = Field(description="The path of the pod's schedulerlog.")


class Findings(Answer):
    total: int
    items: list[Finding] = Field(description="Latest first.")
    continue_: str | None = Field(None, alias="continue")


class PlacementLog(Answer):
    """A pod's time on a node, from ``from`` until just before ``until``."""

    namespace: str
    name: str
    pod_uid: str
    node: str
    started_at: str = Field(description="Time of the bind, or of the first observation there where no bind is known.")
    ended_at: str | None = Field(description="Null while it stays.")
    ended_by: str = Field(
        description="Succeeded, Failed, deleted, replaced (another pod of its name), moved. Empty while it stays."
    )
    phase: str = Field(description="Phase at the last observation.")
    scheduler: str = Field(description="Scheduler that bound it; empty where no bind is known.")
    attempt_id: str
    devices: list[DeviceAllocation] = Field(
        description="Devices that its containers held; empty for a pod without devices."
    )
    description: PodDescription | None = Field(description="Origin of the pod; null where no source reports it.")
    first_judged_at: str | None = Field(description="Start of its first known attempt; null without a known bind.")
    judged_at: str | None = Field(description="Time at which the attempt that placed it had chosen the node.")
    bound_at: str | None
    running_at: str | None = Field(description="Start of its first container; null where it is not known.")
    placement_seconds: float | None = Field(
        description="From its creation, or its first attempt where that is not known, until it was bound."
    )
    start_seconds: float | None = Field(description="From the same time until its first container ran.")
    waited_for: list[str] = Field(description="The reasons that its attempts before this placement failed for.")
    obstacle: str = Field(
        "",
        description="Code of the obstacle that kept it longest before this placement; empty where none is known.",
    )
    attempt: str = Field(description="The path of the attempt that placed it; empty where no bind is known.")
    schedulerlog: str = Field(description="The path of the pod's schedulerlog.")


class PodPlacements(Answer):
    total: int
    items: list[PlacementLog] = Field(description="Latest first.")
    continue_: str | None = Field(None, alias="continue")


class Holder(Answer):
    """A container of a pod, and what it held of a device. Without names where the caller may not read its namespace."""

    namespace: str
    name: str
    container: str
    init: bool
    memory_mib: int | None
    cores_percent: int | None
    slots: int
    started_at: str
    attempt_id: str


class DeviceOccupancy(Answer):
    """A device at one time. Null is a number that no source reports."""

    uuid: str
    model: str
    memory_total_mib: int | None
    memory_held_mib: int | None
    cores_total_percent: int | None
    cores_held_percent: int | None
    slots_total: int | None
    slots_held: int
    healthy: bool | None = Field(description="Null where it stands in no registration.")
    cordoned: bool | None = Field(
        description="True where an operator excluded it (`hami.io/device-cordon`). Null where it is in no registration."
    )
    held_by: list[Holder]


class PodOnNode(Answer):
    namespace: str
    name: str
    pod_uid: str
    phase: str
    started_at: str
    devices: list[str]
    schedulerlog: str


class NodeOccupancy(Answer):
    """Use of a node's devices at one time, with the holders."""

    node: str
    at: str
    cordoned: bool | None = Field(
        description="True where the node takes no further pods, as after `kubectl cordon`. Null where no source "
        "reports it."
    )
    devices: list[DeviceOccupancy] = Field(description="Registered devices in their order, and any other held device.")
    free_devices: int = Field(
        description="Devices that a pod could get completely: no pod holds any of it, and it is neither unhealthy "
        "nor cordoned. 0 on a cordoned node."
    )
    pods: list[PodOnNode] = Field(
        description="Every pod that was there, also those without devices, of the namespaces that the caller may read."
    )
    other_pods: int = Field(0, description="Pods of other namespaces: what they held is in the sums of the devices.")


class DeviceRegistered(Answer):
    uuid: str
    model: str
    mode: str
    index: int
    memory_mib: int
    cores_percent: int
    slots: int
    numa: int
    healthy: bool
    cordoned: bool = Field(description="True where an operator excluded it (`hami.io/device-cordon`).")


class Observation(Answer):
    observed_at: str
    reported_by: str = Field(description="The scheduler that reported it, or `cluster`: the cluster itself.")


class RegistrationLog(Observation):
    registered: bool = Field(description="False where the scheduler can't use the registration; cause says why.")
    cause: str
    handshake: str
    devices: list[DeviceRegistered]


class CheckLog(Observation):
    problems: list[NodeProblem] = Field(description="Empty when what was wrong before was right again.")


class StatusLog(Observation):
    capacity: dict[str, str]
    allocatable: dict[str, str]
    conditions: list[Condition]
    cordoned: bool = Field(description="True where the node takes no further pods (`spec.unschedulable`).")


class NodeState(Answer):
    """State of a node at one time: the latest report of every scheduler by then."""

    node: str
    at: str
    registrations: list[RegistrationLog]
    checks: list[CheckLog] = Field(description="Problems of registration and handshake.")
    status: StatusLog | None = Field(description="Status that the cluster reported; null where no source read it.")
    occupancy: str = Field(description="The path of what was held at that time.")


class PodObservation(Answer):
    observed_at: str
    pod_uid: str
    phase: str
    node: str
    deleted: bool
    conditions: list[Condition]
    scheduler: str = Field(description="The scheduler that the pod asks for.")
    description: PodDescription | None = Field(description="Origin of the pod; null where it is not reported.")
    devices: list[DeviceAllocation] = Field(description="Devices that its annotations or claims name.")
    bind_phase: str = Field(description="Bind phase that HAMi writes on the pod: allocating, success, failed.")
    started_at: str | None = Field(description="Start of its first container.")
    problems: list[ObjectProblem] = Field(description="Problems that keep it from running on its node.")


class PodObservations(Answer):
    total: int
    items: list[PodObservation] = Field(description="Latest first; each says something that the one before it did not.")
    continue_: str | None = Field(None, alias="continue")


ANSWERS: Final = (Findings, PodPlacements, NodeOccupancy, NodeState, PodObservations)
"""Each has a JSON Schema of its own."""
