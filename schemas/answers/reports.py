"""The JSON that the API gives to people about the failures of a range of time."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer
from .diagnosis import Actor, Layer
from .suggestions import AdmittingChangeFound
from .trends import Trends


class ReasonReported(Answer):
    """An obstacle that decided attempts, or a reason that they were refused or their bind failed for, and what to do
    about it."""

    code: str
    attempts: int
    attempts_before: int | None = Field(
        description="Attempts in the range of the same length before; null where not known."
    )
    devices: int = Field(
        description="Devices that were refused for it, in all attempts together; 0 for the reason of a failed bind, "
        "and for an obstacle that is no reason of a device."
    )
    meaning: str = Field(description="Empty where it depends on the pod.")
    remedy: str = Field(description="Empty where it depends on the pod.")
    who_acts: list[Actor] = Field(description="Empty for a reason that the catalogue does not have.")


class AttemptsReported(Answer):
    """The attempts of a namespace or a pool."""

    key: str
    failed: int
    failed_before: int | None


class CauseWaited(Answer):
    """GPU-hours are devices times hours, from a pod's first attempt on."""

    cause: str = Field(description="Code of an obstacle; empty where none is known.")
    pods: int
    gpu_hours: float


class Waited(Answer):
    pods: int
    gpu_hours: float
    causes: list[CauseWaited] = Field(description="Most GPU-hours first.")


class NamespaceUsage(Answer):
    """Devices that the pods of a namespace held, and waited for. GPU-hours are devices times hours.

    A part of a device counts as a device for each pod that holds one.
    """

    namespace: str
    devices: int = Field(description="Devices that its pods hold at the end of the range.")
    held_gpu_hours: float = Field(description="Within the range.")
    waiting_pods: int
    waiting_gpu_hours: float = Field(description="Waits of the pods that wait now, from their first attempts on.")
    placed_gpu_hours: float = Field(description="Waits of the pods that were placed in the range, until their binds.")


class Percentiles(Answer):
    """Null where no pod was measured."""

    pods: int
    p50_seconds: float | None
    p90_seconds: float | None
    p99_seconds: float | None


class Fragmentation(Answer):
    """Free devices and memory, and the reasons why they may fit no pod.

    Devices that are unhealthy or cordoned, and those of cordoned nodes, are left out.
    """

    nodes: int = Field(description="All of them.")
    devices: int = Field(description="Devices that pods can get.")
    free_devices: int = Field(description="Devices that no pod holds any of.")
    free_memory_mib: int
    free_memory_on_shared_mib: int = Field(description="Free memory on devices of which a pod holds a part.")
    smallest_asked_mib: int | None = Field(
        description="The least memory that a waiting pod asks of one device; null where none waits for memory."
    )
    too_small_mib: int | None = Field(
        description="Free on devices that have less than that: it fits no pod that waits. Null where none does."
    )


class LayerWaited(Answer):
    """Time that pods spent in one layer: queue, gate, nodes, bind or start."""

    layer: Layer
    placed_pods: int = Field(description="Pods placed in the range that waited there.")
    placed_seconds: float = Field(
        description="Their time there together; over all layers, the waits of the pods of the range until their start, "
        "or until their bind where no start is known."
    )
    waiting_pods: int = Field(description="Pods that wait there now.")
    waiting_seconds: int = Field(description="Their waits together, each since its first attempt or creation.")


class FindingsReported(Answer):
    finding: str
    count: int


class FailureReport(Answer):
    cluster: str
    namespace: str | None = Field(description="Null for all of them.")
    since: str
    until: str
    language: Literal["en", "zh"]
    attempts: int
    failed: int
    failed_before: int | None
    bind_failed: int = Field(description="Failed attempts that had a node and whose bind failed.")
    bind_failed_before: int | None
    obstacles: list[ReasonReported] = Field(
        default_factory=list,
        description="Obstacles that decided the failed attempts, each of which counts once; most attempts first, at "
        "most ten.",
    )
    reasons: list[ReasonReported] = Field(
        description="Every reason that was seen on a node: an attempt counts for each of its own. Most attempts "
        "first, at most ten; then those of binds that failed, where they are not among them."
    )
    over_time: Trends = Field(description="Failed attempts by obstacle.")
    namespaces: list[AttemptsReported]
    pools: list[AttemptsReported]
    waiting: Waited = Field(description="Pods that wait now, by main obstacle.")
    placed: Waited = Field(
        description="Pods that were placed in the range, each by the obstacle that had kept it longest. Pods of which "
        "none is known are under an empty cause where they waited at all. The GPU-hours are those of the pods of "
        "`time_to_placement`: no wait is known of a pod that had its node when it was first observed."
    )
    layers: list[LayerWaited] = Field(
        default_factory=list, description="Waits by layer, in the order in which a pod passes them."
    )
    usage: list[NamespaceUsage] = Field(description="By namespace, most GPU-hours held first.")
    time_to_placement: Percentiles = Field(description="From a pod's creation, or first attempt, to its bind.")
    time_to_start: Percentiles = Field(description="From the same to the start of its first container.")
    fragmentation: Fragmentation | None = Field(description="Null without the right to list nodes, or without states.")
    findings: list[FindingsReported] = Field(description="Most first.")
    best_change: AdmittingChangeFound | None = Field(
        None,
        description="The one that would let most of the pods in that wait now, as `GET /api/v1/suggestions` finds it; "
        "null where none does, without the right to list nodes, or without states.",
    )


ANSWERS: Final = (FailureReport,)
"""Each has a JSON Schema of its own."""
