"""The JSON that the API gives about what would have to change for a pod to fit."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer
from .diagnosis import Actor, InBothLanguages

Constraint = Literal[
    "memory", "cores", "count", "type", "uuid", "mode", "numa", "policy", "quota", "cordon", "health", "use", "nodes",
    "registration", "lock", "taint", "selector", "request", "uncordon", "node", "claim", "class", "volume",
]  # fmt: skip


class SuggestedEdit(Answer):
    constraint: Constraint
    where: str = Field(
        description="`container: resource`, an annotation of the pod, a device (UUID), a quota's resource, a pod, "
        "a node, a taint's key, a label that the pod selects, or a claim for devices or for a volume."
    )
    before: str
    after: str = Field(description="Empty: it goes.")


class ContainerDevices(Answer):
    container: str
    uuids: list[str]


class SuggestedChange(Answer):
    """Changes after which the pod fits: the scheduler's own fit placed it so."""

    sentence: InBothLanguages
    who_acts: Actor
    edits: list[SuggestedEdit]
    cost: float = Field(description="Less is better: the share of what was asked that is given up; docs/api-pods.md.")
    node: str = Field(description="Node that would take the pod.")
    devices: list[ContainerDevices]
    fit_nodes: int = Field(description="Number of nodes that would take it.")


class Suggestions(Answer):
    """Changes after which a pod would fit."""

    cluster: str
    namespace: str
    name: str
    attempt: str = Field(description="The path of the attempt whose request was judged again.")
    as_of: str = Field(description="Time of the cluster's state: that of the attempt, or now.")
    state: Literal["placed", "fits", "refused"] = Field(
        description="placed: the pod has a node. fits: it fits this cluster as it is; an item "
        "is then a lock that stops its bind. refused: it does not."
    )
    items: list[SuggestedChange] = Field(
        description="The cheapest first; none gives up more of everything than another."
    )
    excluded_by: list[Constraint] = Field(
        description="The smallest set of constraints that together keep the pod from every node; `use` is what other "
        "pods hold, `nodes` that kube-scheduler did not offer the others, `registration` that nodes register nothing "
        "any more. Empty where that is not known."
    )
    nearest: InBothLanguages | None = Field(
        None,
        description="The node that has most of the requested devices now, and how many it is short, as an aside of "
        "the headline. Null where no node has a part of them, or where that was not judged.",
    )
    not_known: list[InBothLanguages] = Field(description="Facts that could not be taken into account.")


class AdmittedWorkload(Answer):
    """Pods of one workload."""

    namespace: str
    workload: str = Field(description="Workload, such as `Job/train`; `Pod/name` for a pod without an owner.")
    pods: int


class AdmittingChangeFound(Answer):
    """One change, and the waiting pods that it lets in: the scheduler's own fit placed them one after the other."""

    sentence: InBothLanguages
    who_acts: Actor
    constraint: Constraint
    where: str = Field(
        description="The node whose devices are uncordoned, repaired or registered, or the namespace without its "
        "quota; empty where each of the pods gives up its own."
    )
    pods: int = Field(description="Number of pods that it admits.")
    devices: int = Field(description="Number of devices that these pods request.")
    workloads: list[AdmittedWorkload] = Field(description="Workloads of these pods, the most pods first; at most ten.")


class SuggestionsForMany(Answer):
    """Single changes, by the number of waiting pods that each would admit."""

    cluster: str
    namespace: str | None = Field(description="Null for all of them.")
    as_of: str
    waiting: int = Field(description="Number of waiting pods that were refused.")
    judged: int = Field(
        description="Number of them that were tried: the longest waiting ones, of the most frequent requests."
    )
    fit: int = Field(description="Number of these that fit the cluster without a change, and take their devices first.")
    items: list[AdmittingChangeFound] = Field(description="The one that lets most pods in first; at most twenty.")
    not_known: list[InBothLanguages] = Field(description="Facts that could not be taken into account.")


ANSWERS: Final = (Suggestions, SuggestionsForMany)
"""Each has a JSON Schema of its own."""
