"""The JSON that the API gives to people about pods that wait, and about what a device refused."""

from typing import Final, Literal

from pydantic import Field

from schemas.answers.attempts import Answer
from schemas.events import ObjectProblem


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
    memory_used_mib: int | None = Field(description="In use before this attempt, as the other numbers of use.")
    cores_used_percent: int | None
    slots_used: int | None
    attempt: str = Field(description="The path of this attempt.")
    schedulerlog: str = Field(description="The path of the schedulerlog of the pod's latest attempt.")


class DeviceRefusals(Answer):
    items: list[DeviceRefused] = Field(description="Latest first.")
    read_records: int = Field(description="How many device records were read for this page.")
    continue_: str | None = Field(None, alias="continue")


class PodWaiting(Answer):
    """A pod whose latest attempt placed it nowhere, or has no bind result yet."""

    namespace: str
    name: str
    pod_uid: str
    scheduler: str
    status: Literal["failed", "pending"] = Field(description="Of its latest attempt.")
    reasons: list[str] = Field(description="The codes that its latest attempt refused nodes for.")
    workload: str
    pod_group: str
    queue: str
    priority_class: str
    created_at: str | None = Field(description="Null where no source says it.")
    first_judged_at: str = Field(description="When the first known attempt of the pod began.")
    last_judged_at: str
    attempts: int | None = Field(None, description="How many attempts of it are known; null where that is not known.")
    attempt: str = Field(description="The path of its latest attempt.")
    schedulerlog: str


class PodsWaiting(Answer):
    total: int
    items: list[PodWaiting] = Field(description="Longest wait first.")
    continue_: str | None = Field(None, alias="continue")


class WorkloadWaiting(Answer):
    """The waiting pods of one workload, of one pod where it has none."""

    namespace: str
    workload: str = Field(
        description="As `Job/train`; `Pod/name` for a pod without an owner, or of which none is known."
    )
    queue: str
    pods: int
    reasons: dict[str, int] = Field(description="Reason code to the number of pods whose latest attempt has it.")
    first_judged_at: str = Field(description="When the first attempt of the pod that waits longest began.")
    last_judged_at: str
    examples: list[PodWaiting] = Field(description="Those that wait longest, at most three.")


class WorkloadBlocked(Answer):
    """A workload that could not make its pods, so that no pod waits."""

    namespace: str
    workload: str
    problem: ObjectProblem = Field(description="As last reported: an exceeded quota, a webhook, …")


class Pending(Answer):
    pods: int = Field(description="How many pods wait, in all workloads.")
    reasons: dict[str, int] = Field(description="Reason code to the number of pods whose latest attempt has it.")
    total: int = Field(description="How many workloads wait.")
    items: list[WorkloadWaiting] = Field(description="Those with the most pods first.")
    blocked: list[WorkloadBlocked] = Field(
        description="Workloads that could not make their pods, latest first; on the first page."
    )
    continue_: str | None = Field(None, alias="continue")


ANSWERS: Final = (DeviceRefusals, Pending, PodsWaiting)
"""Each has a JSON Schema of its own."""
