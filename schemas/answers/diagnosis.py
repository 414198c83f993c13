"""The JSON that the API gives about why a pod waits, or why it is where it is."""

from typing import Final, Literal

from pydantic import Field

from .attempts import NodeLog
from .base import NUMBERS, Answer

Actor = Literal["you", "administrator", "wait"]
"""``you``: who made the pod. ``wait``: it passes when others end or finish."""


class InBothLanguages(Answer):
    en: str
    zh: str


class DiagnosisEvidence(Answer):
    """A record by its id, or an object of the API server by its path."""

    kind: str = Field(
        description="attempt, bind, devices, finding, pod, claim, quota, node, event, scheduler, workload."
    )
    record: str
    at: str | None = Field(description="Time of the record or observation; null where not known.")
    reported_by: str = Field(description="Empty where it is the object itself.")
    numbers: dict[str, int] = Field(description=NUMBERS)
    words: str = Field(description="The text of the source, word for word; empty where it has none.")


class NotKnown(Answer):
    subject: str
    cause: str = Field(
        description="index-down, outside-cluster, another-cluster, not-allowed, api-server-down, not-recorded, "
        "not-read, not-given."
    )
    text: InBothLanguages


class DiagnosisStep(Answer):
    """One question on the way through the decision tree."""

    step: str
    question: InBothLanguages
    answer: Literal["yes", "no", "not known"]
    evidence: list[DiagnosisEvidence]
    not_known: list[NotKnown] = Field(description="Facts that could not be known for this step.")


class ClaimDevice(Answer):
    """A device that a request of a claim cannot have, as an example of those with the same values."""

    device: str = Field(description="driver/pool/device, as in its ResourceSlice.")
    node: str = Field(description="A node that reaches it.")
    text: InBothLanguages = Field(
        description="The device's value and what was asked (`memory 46068Mi, asked at least 80Gi`), its taint, or the "
        "claim that holds it."
    )
    devices: int = Field(description="Number of devices with these values.")


class ClaimDevices(Answer):
    """Devices that one reason keeps from a request of a resource claim."""

    reason: str = Field(description="A reason code (docs/reasons.md).")
    meaning: InBothLanguages
    remedy: InBothLanguages
    devices: int = Field(description="Number of devices with this reason.")
    examples: list[ClaimDevice] = Field(description="Devices with different values, the most frequent first.")


class Obstacle(Answer):
    """Something that keeps the pod from a node."""

    code: str = Field(description="A reason code (docs/reasons.md), or a branch of the tree.")
    sentence: InBothLanguages = Field(description="Statement of the obstacle, with its numbers.")
    likely_cause: InBothLanguages
    remedy: InBothLanguages
    who_acts: list[Actor] = Field(description="Actors who can do something about it, the most likely first.")
    numbers: dict[str, int] = Field(description=f"Numbers of the sentence. {NUMBERS}")
    nodes: list[str] = Field(description="The nodes that it is about, as far as they are named; at most 20.")
    devices: list[ClaimDevices] = Field(
        default_factory=list,
        description="Devices by reason, for a request of a claim, the nearest to a fit first; empty otherwise.",
    )
    evidence: list[DiagnosisEvidence]


class CountComparison(Answer):
    """Verdicts that were worked out on the cluster's objects, next to the scheduler's own counts."""

    agreement: Literal["equal", "different", "not compared"] = Field(
        description="equal: the scheduler counted as many nodes for each reason, which proves the verdicts. different: "
        "it counted otherwise. not compared: it left no counts, or objects that decide could not be read."
    )
    counts: dict[str, int] = Field(description="Reason to number of nodes as worked out.")
    scheduler_counts: dict[str, int] = Field(description="Reason to number of nodes in the scheduler's message.")
    text: InBothLanguages = Field(description="The comparison in one sentence.")


class NodeDifference(Answer):
    """A node on which the scheduler's latest attempt and the judge of the objects decide differently."""

    node: str
    scheduler: NodeLog = Field(description="Verdict of the attempt, from the scheduler's log or records.")
    judged: NodeLog = Field(description="Verdict worked out on the cluster's objects, which are younger or older.")


TimelineEvent = Literal[
    "owner created", "queued", "evicted", "quota reserved", "admitted", "released", "created", "tried", "tried again",
    "chosen", "bound", "allocated", "started", "rejected", "ended",
]  # fmt: skip
"""Events of a time line, in the order in which a pod that is placed at once meets them."""
Layer = Literal["queue", "gate", "nodes", "bind", "start"]
"""Layer in which a pod waits: queue and quota; gates, groups and claims; nodes and devices; the bind; its kubelet."""


class TimelineMoment(Answer):
    """One moment of a pod's way from its owner to its start."""

    event: TimelineEvent
    at: str
    after_seconds: float | None = Field(description="Seconds since the moment before; null for the first one.")
    text: InBothLanguages
    record: str = Field(description="The record or the object of the API server that has the time.")


class LayerWait(Answer):
    """Time that the pod spent in one layer."""

    layer: Layer = Field(
        description="queue: its queue or quota. gate: gates, its group's members, claims. nodes: a node that takes it. "
        "bind: from the choice of a node to the bind. start: from the bind to its first container."
    )
    since: str
    until: str | None = Field(description="Null while it waits there.")
    waited_seconds: float


class StartOutlook(Answer):
    """Start of a waiting pod: its forecast, and the pods that come before it."""

    sentence: InBothLanguages
    earliest: str | None = Field(
        description="A tenth of such pods starts before. Null unless the pod is the first in the order, the interval "
        "has not passed, and at least 80 % of the latest 20 to 50 forecasts were right."
    )
    latest: str | None = Field(description="A tenth of such pods starts later; null as `earliest`.")
    given_at: str | None = Field(description="Time of the latest forecast, shown or not; null where none was made.")
    basis: Literal["", "workload", "shape"] = Field(
        description="Recorded holds of the workloads of `after`, or of pods of their namespaces with as many devices "
        "of the same models. Empty where no interval was found."
    )
    after: list[str] = Field(description="Pods, as NAMESPACE/NAME: the end of any is enough; at most 5.")
    before: int = Field(
        description="Waiting pods that want devices of the same models, with a higher priority, or with the same one "
        "and created no later."
    )
    names_before: list[str] = Field(description="The first of them, as NAMESPACE/NAME; at most 5.")
    right: int = Field(description="Forecasts of this cluster and basis that were right, of those that were judged.")
    judged: int = Field(description="Latest forecasts that the pods' starts have judged; at most 50.")


class Diagnosis(Answer):
    """Diagnosis of a waiting pod."""

    cluster: str
    namespace: str
    name: str
    state: Literal[
        "placed", "binding", "refused", "not judged", "gated", "rejected", "ended", "missing", "not known"
    ] = Field(
        description="placed: on a node. binding: a node was chosen and no bind is known. refused: no node passed, or "
        "the bind failed. not judged: no scheduler has decided about it yet. gated: a scheduling gate holds it back. "
        "rejected: its node's kubelet refused it, or it was evicted or preempted, and nobody tries it again. "
        "ended: it ran to its end or is being deleted. missing: it does not exist."
    )
    at: str = Field(description="Time of the observed state of the cluster.")
    attempt: str | None = Field(description="The path of the attempt that was looked at; null without one.")
    headline: InBothLanguages = Field(
        description="First line of the answer: the nearest node and the cheapest proved change; of a placed pod, its "
        "node and devices, and the next best node. The sentence, where nothing more is proved."
    )
    background: InBothLanguages | None = Field(
        None,
        description="Second line: the sentence, after a headline about the present with the time of the attempt that "
        "it is about. Null where the headline has it.",
    )
    sentence: InBothLanguages = Field(
        description="The main obstacle over all nodes, or the state of the pod, in one sentence."
    )
    obstacle: Obstacle | None = Field(description="The main one; null where nothing is in the way, or none is known.")
    other_obstacles: list[Obstacle] = Field(description="Other obstacles, the most important first.")
    excluded_by: list[str] | None = Field(
        None,
        description="The smallest set of constraints that together keep the pod from every node (memory, cores, count, "
        "type, …): without any one of them it would fit somewhere. Null where that was not computed.",
    )
    start: StartOutlook | None = Field(
        None,
        description="Its start, and the pods that come before it. Null where it does not wait for devices of nodes, "
        "and where neither a forecast nor a pod before it is known.",
    )
    layer: Layer | None = Field(
        None, description="Layer of the main obstacle, in which the pod waits now; null where it does not wait."
    )
    timeline: list[TimelineMoment] = Field(
        default_factory=list, description="Moments of its way through the layers, the earliest first, as far as known."
    )
    waits: list[LayerWait] = Field(
        default_factory=list, description="Time that it spent in each layer, in the order of the layers."
    )
    nodes: list[NodeLog] | None = Field(
        None,
        description="Verdict on each node with its reasons, of the latest attempt or worked out on the cluster's "
        "objects. Null where nodes are answered elsewhere (`/schedulerlog`), or none is known.",
    )
    comparison: CountComparison | None = Field(
        None,
        description="Proof of verdicts that were worked out on the cluster's objects. Null where the verdicts are the "
        "scheduler's own, or none was needed.",
    )
    notes: list[InBothLanguages] = Field(
        default_factory=list,
        description="Words of the pod's owner that no scheduler reads, or reads otherwise than they were meant.",
    )
    differences: list[NodeDifference] = Field(
        default_factory=list,
        description="Nodes on which the verdict of the latest attempt is another than the one worked out on the "
        "cluster's objects. Empty where they agree, or where one of the two is missing.",
    )
    steps: list[DiagnosisStep] = Field(description="The questions in the order in which they were asked.")
    not_known: list[NotKnown] = Field(description="Facts that could not be known, of all steps.")


ANSWERS: Final = (Diagnosis,)
"""Each has a JSON Schema of its own."""
