"""The JSON that the API gives to people about pods that wait, and about what a device refused."""

from typing import Final, Literal

from pydantic import Field

from ..events import ObjectProblem
from .base import Answer
from .diagnosis import InBothLanguages, Layer


class DeviceRefused(Answer):
    """A device that refused one container in one attempt, with the numbers behind it; null is a number not reported."""

    attempt_id: str
    namespace: str
    name: str
    scheduler: str
    started_at: str
    node: str
    container: str
    reason: str
    memory_total_mib: int | None
    memory_used_mib: int | None = Field(description="Use before this attempt, as the other numbers of use.")
    cores_used_percent: int | None
    slots_used: int | None
    attempt: str = Field(description="The path of this attempt.")
    schedulerlog: str = Field(description="The path of the schedulerlog of the pod's latest attempt.")


class DeviceRefusals(Answer):
    items: list[DeviceRefused] = Field(description="Latest first.")
    read_records: int = Field(description="Number of device records read for this page.")
    continue_: str | None = Field(None, alias="continue")


class MainObstacle(Answer):
    """Obstacle that keeps a pod from every node, from its latest attempt only: code and sentence as in the pod's
    diagnosis."""

    code: str = Field(description="A reason code (docs/reasons.md), or a branch of the diagnosis' tree.")
    sentence: InBothLanguages


class NearestNode(Answer):
    """The node that lacks least, of those that the latest attempt refused for their devices, and what it lacks."""

    node: str
    reasons: dict[str, int] = Field(description="Reason code to the number of its devices, in the attempt.")
    missing_devices: int | None = Field(
        description="Number of devices that it lacks, as the attempt counts them; null where its source does not count."
    )
    missing_memory_mib: int | None = Field(
        description="Memory that it lacks now: summed over as many of its devices as the pod requests, those with "
        "the most free memory, each by as much as it has less than requested. Null while its devices are"
        " not known."
    )
    missing_cores_percent: int | None = Field(
        description="Cores that it lacks now, summed likewise; 100 is one whole device."
    )


class PodWaiting(Answer):
    """A pod whose latest attempt placed it nowhere, or has no bind result yet, or that no scheduler tries."""

    namespace: str
    name: str = Field(description="Name of the pod; kind and name, as `job/train`, of a workload that has no pods.")
    pod_uid: str
    scheduler: str
    status: Literal["failed", "pending"] = Field(description="Status of its latest attempt; pending without one.")
    reasons: list[str] = Field(description="The codes that its latest attempt refused nodes for.")
    workload: str
    pod_group: str
    queue: str
    priority_class: str
    created_at: str | None = Field(description="Null where no source says it.")
    first_judged_at: str = Field(
        description="Start of the first known attempt of the pod; its creation where it has none."
    )
    last_judged_at: str = Field(description="Its latest attempt, or its latest observation where it has none.")
    attempts: int | None = Field(None, description="Number of its known attempts; null where not known.")
    attempt: str = Field(description="The path of its latest attempt; empty where it has none.")
    schedulerlog: str
    waited_seconds: int = Field(0, description="From first_judged_at to the time of the answer.")
    devices: int | None = Field(
        None, description="The most devices that it holds at a time; null where what it asks for is not known."
    )
    gpu_hours: float | None = Field(None, description="devices x waited_seconds / 3600; null where devices is.")
    obstacle: MainObstacle | None = Field(None, description="Null where none is known: a bind has no result yet, …")
    layer: Layer | None = Field(None, description="Layer of the obstacle, as in the pod's diagnosis.")
    nearest: NearestNode | None = Field(
        None, description="Null where a node fitted, or none was refused for its devices by name."
    )
    models: list[str] = Field(default=[], description="The models of the devices that its latest attempt judged.")
    pools: list[str] = Field(default=[], description="The node pools that its latest attempt judged nodes of.")


class PodsWaiting(Answer):
    """The answer with ``group_by=pod``, and that of ``/api/v1/pods?state=waiting``."""

    total: int
    items: list[PodWaiting] = Field(description="Longest wait first, or as `sort` says.")
    continue_: str | None = Field(None, alias="continue")


class WorkloadWaiting(Answer):
    """The waiting pods of one workload, of one pod where it has none."""

    namespace: str
    workload: str = Field(
        description="Workload, such as `Job/train`; `Pod/name` for a pod without an owner, or of which none is known."
    )
    queue: str
    layer: Layer | None = Field(None, description="Layer in which its longest waiting pod waits.")
    pods: int
    obstacles: dict[str, int] = Field(
        default_factory=dict, description="Code of the obstacle to the number of pods, most pods first."
    )
    reasons: dict[str, int] = Field(description="Reason code to the number of pods whose latest attempt has it.")
    first_judged_at: str = Field(description="Start of the first attempt of the longest waiting pod.")
    last_judged_at: str
    examples: list[PodWaiting] = Field(description="Longest waiting pods, at most three.")
    devices: int = Field(0, description="Devices of its pods together, as far as they are known.")
    gpu_hours: float = Field(0, description="GPU hours of its pods together.")


class WorkloadBlocked(Answer):
    """A workload that could not make its pods, so that no pod waits."""

    namespace: str
    workload: str
    problem: ObjectProblem = Field(description="Problem as last reported: an exceeded quota, a webhook, …")


class LayerWaiting(Answer):
    """The pods that wait in one layer."""

    pods: int
    waited_seconds: int = Field(description="Their waits together, each since its first attempt or creation.")


class Pending(Answer):
    pods: int = Field(description="Number of waiting pods, in all workloads.")
    layers: dict[Layer, LayerWaiting] = Field(default_factory=dict, description="Waiting pods by layer.")
    obstacles: dict[str, int] = Field(
        default_factory=dict,
        description="Code of the obstacle to the number of pods, most pods first; each pod has one at most.",
    )
    reasons: dict[str, int] = Field(description="Reason code to the number of pods whose latest attempt has it.")
    total: int = Field(description="Number of waiting workloads.")
    items: list[WorkloadWaiting] = Field(description="Workloads, those with the most pods first.")
    blocked: list[WorkloadBlocked] = Field(
        description="Workloads that could not make their pods, latest first; on the first page."
    )
    continue_: str | None = Field(None, alias="continue")


class ObstacleWaiting(Answer):
    """The waiting pods that ask for the same and are kept out by the same."""

    obstacle: MainObstacle | None = Field(
        description="Obstacle of the longest waiting pod among them; null for pods of which no obstacle is known."
    )
    asked: str = Field(
        description="Request of each of them, such as `2 x 40000 MiB, 30 % of cores`; empty if not known."
    )
    layer: Layer | None = Field(None, description="Layer of the obstacle.")
    pods: int
    workloads: int = Field(description="Number of their workloads.")
    namespaces: int
    devices: int = Field(description="Devices of its pods together, as far as they are known.")
    gpu_hours: float = Field(description="GPU hours of its pods together.")
    first_judged_at: str = Field(description="Start of the first attempt of the longest waiting pod.")
    last_judged_at: str
    nearest: NearestNode | None = Field(description="Nearest node of the longest waiting pod.")
    examples: list[PodWaiting] = Field(description="Longest waiting pods, at most three.")


class PendingObstacles(Answer):
    """The answer with ``group_by=obstacle``."""

    pods: int = Field(description="Number of waiting pods, for any reason.")
    layers: dict[Layer, LayerWaiting] = Field(default_factory=dict, description="Waiting pods by layer.")
    total: int = Field(description="Number of different obstacles.")
    items: list[ObstacleWaiting] = Field(
        description="Obstacles, those with the most pods first, or in the order of `sort`."
    )
    continue_: str | None = Field(None, alias="continue")


class LayerListed(Answer):
    """The waiting pods that one layer holds."""

    layer: Layer | None = Field(description="Null for pods of which no obstacle is known.")
    pods: int
    waited_seconds: int = Field(description="Their waits together, each since its first attempt or creation.")
    workloads: int = Field(description="Number of their workloads.")
    namespaces: int
    obstacles: dict[str, int] = Field(description="Code of the obstacle to the number of pods, most pods first.")
    devices: int = Field(description="Devices of its pods together, as far as they are known.")
    gpu_hours: float = Field(description="GPU hours of its pods together.")
    first_judged_at: str = Field(description="Start of the first attempt of the longest waiting pod.")
    last_judged_at: str
    examples: list[PodWaiting] = Field(description="Longest waiting pods, at most three.")


class PendingLayers(Answer):
    """The answer with ``group_by=layer``; ``pods`` and ``waited_seconds`` of its items add up to those of all."""

    pods: int = Field(description="Number of waiting pods, for any reason.")
    layers: dict[Layer, LayerWaiting] = Field(default_factory=dict, description="Waiting pods by layer.")
    total: int = Field(description="Number of layers in which pods wait.")
    items: list[LayerListed] = Field(description="Layers, those with the most pods first, or in the order of `sort`.")
    continue_: str | None = Field(None, alias="continue")


class PendingRow(Answer):
    """A waiting pod, workload, obstacle or layer without nesting (``format=flat``), and the columns of ``format=csv``.

    What a row is not about is empty, or null: of a workload's or an obstacle's row, what its pods do not share.
    """

    pods: int = Field(description="1 for a pod.")
    namespace: str
    name: str
    workload: str
    queue: str
    priority_class: str
    scheduler: str
    status: str
    first_judged_at: str = Field(description="Since when it waits; of several pods, the one that waits longest.")
    last_judged_at: str
    waited_seconds: int
    attempts: int | None
    devices: int | None
    gpu_hours: float | None
    layer: str = Field(description="Layer of the obstacle: queue, gate, nodes, bind or start.")
    obstacle: str = Field(description="The code.")
    sentence: str = Field(description="Sentence in English.")
    sentence_zh: str
    reasons: str = Field(description="Reason codes, separated by spaces.")
    nearest_node: str
    missing_devices: int | None
    missing_memory_mib: int | None
    missing_cores_percent: int | None
    schedulerlog: str


PendingAnswer = Pending | PendingObstacles | PendingLayers | PodsWaiting | list[PendingRow]
"""Answer in the form that ``group_by`` and ``format`` choose."""

ANSWERS: Final = (DeviceRefusals, Pending, PendingObstacles, PendingLayers, PodsWaiting)
"""Each has a JSON Schema of its own."""
