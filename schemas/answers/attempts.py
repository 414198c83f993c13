"""The JSON that the API gives to people. ``SchedulerLog`` is the proposal's answer, field for field."""

from typing import Any, Final, Literal

from pydantic import Field

from ..events import BindOutcome, PodDescription, Reconstruction, Report, Request
from .base import Answer


class DeviceLog(Answer):
    """One device as it stood when it was judged for one container; null is a number that its scheduler did not say.

    Where the state of its node is not known, uuid and model are empty and every number is null."""

    node: str
    container: str
    uuid: str
    verdict: str = Field(description="picked, fits, not reached, or the reason code it was refused for.")
    model: str
    numa: int | None
    memory_total_mib: int | None
    memory_used_mib: int | None = Field(
        description="Use before this attempt, as the other numbers of use; also for the pod's later containers, "
        "although the devices picked for earlier ones count for them too."
    )
    cores_total_percent: int | None
    cores_used_percent: int | None
    slots_total: int | None
    slots_used: int | None
    device_index: int | None = Field(
        description="The device's number on its node, or else the one that the log prints of it."
    )
    memory_requested_mib: int | None = Field(
        description="Memory requested of this device, where a log reports it for each device."
    )
    cores_requested_percent: int | None
    checks: dict[str, bool] = Field(description="Checks of the device by its scheduler, where a log reports them.")


PhaseStatus = Literal["passed", "failed", ""]
"""Empty: the phase was not reached."""


class ContainerLog(Answer):
    name: str
    status: Literal["passed", "failed"]
    reason: str | None = Field(None, description="Reason of the failure: 'X/Y Reason' pairs. Absent when it passed.")


class NodeLog(Answer):
    name: str
    status: Literal["passed", "failed"]
    score: float = Field(description="To two decimals; 0 for a node that was refused.")
    containers: list[ContainerLog] = Field(description="Containers in the pod's order, up to the first that failed.")


class FilterLog(Answer):
    status: PhaseStatus
    summary: str = Field(description="The text of the pod's event.")
    nodes: list[NodeLog] = Field(description="Sorted by name.")


class BindLog(Answer):
    status: PhaseStatus
    summary: str


class SchedulerLog(Answer):
    status: Literal["succeeded", "failed", "pending"] = Field(
        description="succeeded: bound. failed: no node passed, or the bind failed. pending: no bind result yet."
    )
    filter: FilterLog
    bind: BindLog


class Paging(Answer):
    total: int = Field(description="Number of items before paging.")
    continue_: str | None = Field(None, alias="continue", description="Give this back as ?continue= for the next page.")


class NodeScore(Answer):
    """Terms of the score of a node that fits."""

    node: str
    score: float
    terms: dict[str, float] = Field(description="By name; they add up to the score, up to rounding.")


class Detail(Answer):
    """Additions of ``?detail=full`` to the proposal's fields."""

    attempt_id: str
    scheduler: str
    pod_uid: str
    started_at: str
    ended_at: str | None
    complete: bool
    missing: str
    reports: list[Report] = Field(description="Sources that reported the attempt, the best one first.")
    requests: list[Request]
    constraints: dict[str, str] | None = Field(
        description="The pod's annotations that say which devices and nodes it takes; null where they are not known."
    )
    node_policy: str
    device_policy: str
    offered_nodes: int
    fit_nodes: int
    not_reached_nodes: int = Field(
        0, description="Nodes that the walk did not look at; the list of nodes leaves them out."
    )
    judged_devices: int
    chosen: str | None
    picked_devices: list[str]
    reasons: dict[str, int] = Field(description="Reason code to the number of nodes that were refused for it.")
    nominated: str = Field("", description="The node that the pod waits for until others have left it.")
    scheduler_message: str = Field("", description="The end in the words of the scheduler that it was read from.")
    reconstruction: Reconstruction | None = Field(
        None,
        description="Origin of the verdicts where a reader worked them out on the cluster's objects, and whether they"
        " agree with the scheduler's counts. Null where the verdicts are the scheduler's own.",
    )
    may_duplicate: list[str] = Field(
        description="Ids of other attempts that may be the same try, reported by another source: that is not certain."
    )
    description: PodDescription | None = Field(
        description="Origin of the pod: its owners, group, queue and creation time. Null where not known."
    )
    settings_digest: str = Field(description="The scheduler's settings in force, as `/api/v1/schedulers` has them.")
    first_judged_at: str | None = Field(description="Start of the pod's first known attempt.")
    bind: BindOutcome | None = Field(
        description="Result of the bind: node, time or error, and the holder of the node's lock. Null without a bind"
        " result."
    )
    scores: list[NodeScore] = Field(
        description="The terms behind the scores of the nodes that ?node= names, else of the chosen one. Empty where "
        "no source says them."
    )


class FullSchedulerLog(SchedulerLog):
    """The answer with ``?detail=full``."""

    detail: Detail
    paging: Paging
    devices: list[DeviceLog] | None = Field(
        description="Devices of the nodes that ?node= names. Null where none is named; devices_note has the reason "
        "otherwise."
    )
    devices_note: str = ""


class Episode(Answer):
    """Attempts in a row with the same verdicts."""

    first_seen_at: str
    last_seen_at: str
    attempts: int
    attempt_ids: list[str] = Field(description="Latest first; each can be opened as the attempt below.")
    attempt: str = Field(description="The path of the latest of these attempts.")
    status: Literal["succeeded", "failed", "pending"]
    filter: dict[str, Any]
    bind: BindLog
    chosen: str | None
    obstacle: str = Field("", description="Code of the obstacle that decided its latest attempt; empty where none did.")
    reasons: list[str]
    changes: list[str] = Field(
        default_factory=list,
        description="Changes since the previous attempt, such as 'node7: 3/8 CardInsufficientMemory became fit'.",
    )


class History(Answer):
    namespace: str
    name: str
    episodes: list[Episode] = Field(description="Latest first.")
    continue_: str | None = Field(None, alias="continue")


class AttemptFound(Answer):
    """One attempt in a search result."""

    attempt_id: str
    namespace: str
    name: str
    scheduler: str
    started_at: str
    ended_at: str | None
    status: Literal["succeeded", "failed", "pending"]
    complete: bool
    chosen: str | None
    offered_nodes: int
    fit_nodes: int
    obstacle: str = Field("", description="Code of the decisive obstacle; empty where the attempt has none.")
    reasons: list[str]
    summary: str
    workload: str = Field(description="The owner that the pod comes from, as `Job/train`; empty where it is not known.")
    attempt: str = Field(description="The path of this attempt.")
    schedulerlog: str = Field(description="The path of the schedulerlog of the pod's latest attempt.")


class WorkloadFound(Answer):
    """The attempts of a search that come from one workload."""

    namespace: str
    workload: str = Field(description="Workload, such as `Job/train`.")
    pods: int
    attempts: int
    reasons: dict[str, int] = Field(description="Reason code to the number of attempts that it refused a node in.")
    last_started_at: str


class NodeRefusalsFound(Answer):
    """The attempts of a search in which a node was refused for one reason."""

    node: str
    reason: str
    attempts: int = Field(description="Without retries that changed nothing.")
    pods: int
    last_started_at: str


class Search(Answer):
    total: int
    items: list[AttemptFound] = Field(description="Latest first.")
    workloads: list[WorkloadFound] | None = Field(
        None,
        description="With `group_by=workload`, on the first page: the 100 workloads with the most attempts of the "
        "whole list. Pods without an owner are in none.",
    )
    nodes: list[NodeRefusalsFound] | None = Field(
        None,
        description="With `group_by=node`, on the first page: the 100 pairs of node and reason with the most attempts "
        "of the whole list; with `node` or `reason`, of these alone.",
    )
    continue_: str | None = Field(None, alias="continue")


class Error(Answer):
    """Every error; also a problem of RFC 9457."""

    error: str = Field(description="The cause.")
    next: str = Field(description="Next step: a check or an action.")
    code: str = Field(description="Kind of the error: a word that programs may compare.")
    type: str = Field(description="The code as a URI.")
    title: str = Field(description="The phrase of the status.")
    status: int
    detail: str = Field(description="The cause again, where RFC 9457 has it.")


ANSWERS: Final = (SchedulerLog, FullSchedulerLog, Detail, History, Search, Error)
"""Each has a JSON Schema of its own."""
