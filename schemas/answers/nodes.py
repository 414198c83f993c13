"""The JSON that the API gives to people about clusters, the nodes of one, its schedulers, and its names."""

from typing import Final, Literal

from pydantic import Field

from ..events import NodeProblem
from .base import Answer


class ClusterFound(Answer):
    """A cluster that the index has records of."""

    name: str
    is_default: bool = Field(description="True for the cluster that paths without a cluster are about.")
    first_record_at: str | None = Field(description="Null where there is no record.")
    last_record_at: str | None
    path: str = Field(description="Prefix of every path about this cluster.")


class Clusters(Answer):
    items: list[ClusterFound] = Field(description="By name.")


class RegistrationListed(Answer):
    """A node's registration, without its devices."""

    reported_by: str = Field(description="The scheduler that registered it, or `cluster`: the cluster itself.")
    observed_at: str
    registered: bool = Field(description="False where the scheduler can't use the registration; cause says why.")
    cause: str
    handshake: str
    devices: int


class NodeLock(Answer):
    """A lock that kept a pod from being bound to a node."""

    pod: str = Field(description="Pod that held it, as namespace/name; empty where the lock names no pod.")
    locked_at: str | None
    seen_at: str = Field(description="Time of the bind that failed because of it.")


class ModelOnNode(Answer):
    """Devices of one model on a node."""

    model: str
    devices: int
    free_devices: int = Field(description="Devices that a pod could get completely, counted as for the node.")
    memory_total_mib: int | None
    memory_held_mib: int | None = Field(description="Memory that pods hold, also of excluded devices.")
    memory_free_mib: int | None = Field(description="Free memory, counted as for the node.")
    memory_in_pieces_mib: int | None = Field(description="Part of the free memory on devices of which pods hold some.")
    memory_stranded_mib: int | None = Field(
        description="Part of the free memory that no pod gets, because all cores or slots of the device are held."
    )
    cores_total_percent: int | None = Field(description="Cores, 100 for a whole device.")
    cores_held_percent: int | None = Field(description="Cores that pods hold, also of excluded devices.")


class DeviceFill(Answer):
    """Shares of a device that pods hold, in percent; above 100 where they hold too much. Null is not known."""

    model: str
    memory_percent: int | None
    cores_percent: int | None
    slots_percent: int | None = Field(
        description="Share of the node's whole resource where no plugin registers each device."
    )
    healthy: bool | None
    cordoned: bool | None


class ExcludedDevice(Answer):
    """A device that no further pod gets."""

    uuid: str
    model: str
    healthy: bool | None
    cordoned: bool | None


class NamespaceOnNode(Answer):
    """Use that pods of one namespace make of a node's devices."""

    namespace: str = Field(description="Empty for namespaces that the caller may not read, all together.")
    pods: int
    devices: int = Field(description="Devices by pod: one that two pods share counts for both.")
    memory_mib: int
    cores_percent: int


class NodeListed(Answer):
    """A node with what is free of its devices. Null is a number that is not known."""

    node: str
    pool: str = Field(description="Its pool; empty without one.")
    pool_source: str = Field(
        description="`SCHEDULERLOG_NODE_POOLS`, or the label of the node that names the pool; empty without one."
    )
    registrations: list[RegistrationListed]
    problems: list[NodeProblem] = Field(description="Current problems of registration and handshake.")
    ready: str | None = Field(
        description="`True`, `False` or `Unknown`, as the cluster reports it; null where not known."
    )
    cordoned: bool | None = Field(
        description="True where the node takes no further pods, as after `kubectl cordon`. Null where no source "
        "reports it."
    )
    lock: NodeLock | None = Field(
        description="The lock that the latest failed bind of the last five minutes reports. Null without one."
    )
    pods: int = Field(description="Pods on the node, also those without devices.")
    devices: int
    unhealthy_devices: int
    cordoned_devices: int = Field(description="Devices that an operator excluded (`hami.io/device-cordon`).")
    free_devices: int = Field(
        description="Devices that a pod could get completely: no pod holds any of it, and it is neither unhealthy "
        "nor cordoned. 0 on a cordoned node, as are the amounts of free memory."
    )
    memory_free_mib: int | None = Field(
        description="Free memory of all devices that are neither unhealthy nor cordoned, including those that pods "
        "hold a part of."
    )
    largest_free_mib: int | None = Field(description="The most that is free on one device.")
    fragmentation: float | None = Field(
        description="The share of the free memory that lies on devices of which pods hold some: 0 where it is all on "
        "free devices, 1 where none is."
    )
    models: list[ModelOnNode] = Field(description="By model.")
    fill: list[DeviceFill] = Field(description="Its devices, in the order of their registration.")
    excluded: list[ExcludedDevice] = Field(description="Devices that are unhealthy or cordoned.")
    held: list[NamespaceOnNode] = Field(description="By namespace.")
    path: str
    occupancy: str = Field(description="The path of what is held of each device, and by whom.")


class Nodes(Answer):
    total: int
    items: list[NodeListed] = Field(description="By name.")
    continue_: str | None = Field(None, alias="continue")


class SettingChanged(Answer):
    setting: str
    before: str | None = Field(description="Null where it was not set.")
    after: str | None


class SchedulerChange(Answer):
    """Differences between two observations of a scheduler."""

    observed_at: str
    instance: str
    version_before: str
    version: str
    settings: list[SettingChanged] = Field(description="By name.")


class SchedulerInstance(Answer):
    instance: str = Field(description="The pod or host that it runs as; empty where it is not known.")
    observed_at: str
    version: str
    settings_digest: str


class SchedulerListed(Answer):
    """A scheduler as it was observed last."""

    scheduler: str
    implementation: str
    version: str
    settings: dict[str, str]
    settings_digest: str = Field(description="Attempts name it (`?detail=full`).")
    observed_at: str
    instances: list[SchedulerInstance] = Field(description="Latest first.")
    changes: list[SchedulerChange] = Field(
        description="Changes of version and settings in the last 30 days, latest first."
    )


class Schedulers(Answer):
    items: list[SchedulerListed] = Field(description="By name.")


class NameMatched(Answer):
    """A pod, workload, node or namespace of which the API has a record in memory."""

    kind: Literal["namespace", "node", "workload", "pod"]
    namespace: str = Field(description="Namespace of the pod or workload; empty for the other kinds.")
    name: str = Field(description="Name; of a workload with its kind, as `job/train`.")
    text: str = Field(description="The name as one text: `llm/train-0`, `llm/job/train`, `node3`, `llm/`.")


class Names(Answer):
    """Names of the cluster, for callers who may read them."""

    items: list[NameMatched] = Field(description="Equal names first, then those that begin with the text.")
    are_similar: bool = Field(description="True if no name contains the text: the names are similar to it.")


ANSWERS: Final = (Clusters, Nodes, Schedulers, Names)
"""Each has a JSON Schema of its own."""
