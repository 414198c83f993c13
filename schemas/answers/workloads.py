"""The JSON about a workload: why its pods wait, and its way through the layers."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer
from .diagnosis import Diagnosis, InBothLanguages, Obstacle, TimelineEvent


class TimelineStage(Answer):
    """An event on the way of a workload through the layers, of one or several objects."""

    event: TimelineEvent
    at: str = Field(description="Time of the first object.")
    last_at: str = Field(description="Time of the last object.")
    after_seconds: float | None = Field(description="Seconds since the event before; null for the first one.")
    subject: str = Field(description="The object, or the first of several, as `Pod/train-0`.")
    count: int = Field(description="Number of objects.")


class PodsOfWorkload(Answer):
    """Pods of a workload with the same obstacle."""

    state: str = Field(description="The state of their diagnosis; `not made` for pods that do not exist yet.")
    count: int
    pods: list[str] = Field(description="Their names; at most 20. Empty for pods that do not exist yet.")
    nodes: list[str] = Field(description="Nodes of placed pods; at most 20.")
    obstacle: Obstacle | None = Field(description="Main obstacle; null where nothing is in the way, or none is known.")
    diagnosis: Diagnosis | None = Field(description="Diagnosis of the first of them; null for placed pods.")


class WorkloadDiagnosis(Answer):
    """Diagnosis of a workload."""

    cluster: str
    namespace: str
    kind: str = Field(description="Kind with its API group, as `Job.batch`.")
    name: str
    state: Literal["placed", "waiting", "ended", "empty"] = Field(
        description="placed: all its pods have nodes. waiting: pods wait, or could not be made. ended: nothing of it "
        "waits or runs. empty: it wants no pods now."
    )
    at: str = Field(description="Time of the observed state of the cluster.")
    sentence: InBothLanguages = Field(description="The answer in one sentence.")
    wanted: int | None = Field(description="Pods that it wants at the same time; null where its kind does not say.")
    placed: int
    waiting: int = Field(description="Pods without a node, those that do not exist yet included.")
    ended: int
    groups: list[PodsOfWorkload] = Field(description="Pods by their main obstacle, the decisive group first.")
    objects: list[str] = Field(description="Objects of its family that were read, as `Job/train`; at most 20.")
    timeline: list[TimelineStage] = Field(
        description="Events, the earliest first. The diagnosis of the first group has what is waited for now."
    )


ANSWERS: Final = (WorkloadDiagnosis,)
"""Each has a JSON Schema of its own."""
