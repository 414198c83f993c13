"""The JSON of recorded pods and nodes of a range of time, and of their replay under another setting."""

from typing import Any, Final

from pydantic import AwareDatetime, Field

from schemas.events import DeviceAllocation, Request

from .base import Answer
from .diagnosis import InBothLanguages


class RecordedPod(Answer):
    """A pod that wanted devices in the range. Its times are those of the record, whether before the range or in it."""

    namespace: str
    name: str
    uid: str
    workload: str = Field(description="The owner that nobody else owns, as `Job/train`; empty for a pod of its own.")
    priority: int = Field(description="0 where no source reports it.")
    waits_since: AwareDatetime = Field(description="Creation; where no source reports it, start of the first attempt.")
    bound_at: AwareDatetime | None = Field(description="Null for a pod that no node took.")
    left_at: AwareDatetime | None = Field(
        description="End of a placed pod; of one that no node took, its last attempt if that is an hour or more before "
        "the end of the range. Null where it lasts."
    )
    node: str = Field(description="Empty for a pod that no node took.")
    allocations: list[DeviceAllocation]
    requests: list[Request] = Field(description="Empty where no attempt of the pod is recorded in the range.")
    constraints: dict[str, str] = Field(description="Annotations of the pod that constrain its devices and nodes.")
    node_policy: str
    device_policy: str
    offered: int | None = Field(
        description="Position in `offers` of the nodes that kube-scheduler offered; null without an attempt."
    )


class RecordedNode(Answer):
    """The devices that a node registered, from a time on."""

    since: AwareDatetime
    state: dict[str, Any] = Field(description="The state that the topic of node states has.")


class Recording(Answer):
    """Pods that wanted devices in a range of time, and the nodes that registered some: the input of a replay."""

    cluster: str
    since: AwareDatetime = Field(description="Later than the given time where the first recorded node is.")
    until: AwareDatetime
    nodes: list[RecordedNode] = Field(
        description="By time, then by name. A change of what a node registers has the next day's time."
    )
    offers: list[list[str]] = Field(description="Distinct sets of nodes, which pods refer to.")
    pods: list[RecordedPod] = Field(description="By the time since which they wait.")


class ReplayedWaits(Answer):
    """Waits of the pods within the range."""

    started: int = Field(description="Pods that a node took within the range.")
    waiting: int = Field(description="Pods that no node had taken when the range, or their own wait, ended.")
    gpu_hours: float = Field(description="Hours waited within the range, each times the devices that the pod wants.")


class ReplayedWorkload(Answer):
    namespace: str
    workload: str = Field(description="Owner, such as `Job/train`; `Pod/name` for a pod of its own.")
    pods: int
    started_before: int = Field(description="Pods that a node took in the replay without the change.")
    started_after: int
    before_gpu_hours: float = Field(description="GPU-hours waited in the replay without the change.")
    after_gpu_hours: float


class DifferingPod(Answer):
    """A pod whose replay without a change is not like its record."""

    namespace: str
    name: str
    recorded_start: AwareDatetime | None = Field(description="Null where no node took it within the range.")
    replayed_start: AwareDatetime | None


class RangeReplay(Answer):
    """A range of time decided again twice, as it was and with a change; nothing was written."""

    cluster: str
    since: AwareDatetime
    until: AwareDatetime
    change: InBothLanguages
    pods: int = Field(description="Pods that waited within the range, each decided again.")
    decisions: int = Field(description="Decisions of both replays.")
    recorded: ReplayedWaits = Field(description="The record itself.")
    unchanged: ReplayedWaits = Field(description="The replay without a change.")
    changed: ReplayedWaits | None = Field(description="The replay with the change; null unless `is_reproduced`.")
    agreeing: int = Field(
        description="Pods whose start in the replay without a change is that of the record, within a minute or a tenth "
        "of the wait; or that no node took in both."
    )
    is_reproduced: bool = Field(
        description="True where the replay without a change is like the record: four fifths of the pods agree, and the "
        "GPU-hours differ by a fifth at most, or by one at most."
    )
    differing: list[DifferingPod] = Field(
        description="The other pods, those that were placed only once first, then by the difference."
    )
    sentence: InBothLanguages
    shorter: list[ReplayedWorkload] = Field(description="Workloads that wait less, the greatest difference first.")
    longer: list[ReplayedWorkload] = Field(description="Workloads that wait longer, the greatest difference first.")
    notes: list[InBothLanguages] = Field(description="Parts of the record that the replay leaves out.")


ANSWERS: Final = (Recording, RangeReplay)
"""Each has a JSON Schema of its own."""
