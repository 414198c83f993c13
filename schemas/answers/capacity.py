"""The JSON that the API gives to people about what a cluster takes: how many pods start now, and plans."""

from typing import Final, Literal

from pydantic import Field

from .base import Answer
from .diagnosis import InBothLanguages
from .suggestions import SuggestedChange


class NodeCapacity(Answer):
    node: str
    pods: int = Field(description="Further pods of the shape that start on the node now.")


class ReleasingPod(Answer):
    """A pod whose end makes room."""

    namespace: str
    name: str
    node: str
    pods: int = Field(description="Further pods of the shape that start after its end.")


class NodesToAdd(Answer):
    """A kind of node of which a number takes the pods that wait."""

    like: str = Field(description="Node of the cluster with the same devices.")
    models: list[str]
    nodes: int
    pods_each: int = Field(description="Pods of the shape that one such node takes when it is empty.")


class Fits(Answer):
    """Pods of one shape on a cluster as it is. Nothing was written, and no scheduler was asked."""

    name: str
    wanted: int
    starts: int = Field(description="Number of the wanted pods that start now; of a gang all that it needs, or none.")
    capacity: int = Field(description="Pods of the shape that start now, whatever number is wanted.")
    is_counted: bool = Field(description="False where counting ended at a limit, and more may start.")
    node_count: int = Field(description="Nodes that take at least one.")
    nodes: list[NodeCapacity] = Field(description="By the number of pods, then by name; at most 20.")
    added: list[str] = Field(description="Names of nodes that were added for the question.")
    sentence: InBothLanguages
    obstacle: InBothLanguages | None = Field(
        description="Reason why the next pod waits, with those before it in place; null where all start or where the "
        "cluster is too large to place them all."
    )
    change: SuggestedChange | None = Field(description="Cheapest change after which the next pod starts too.")
    next_end: ReleasingPod | None = Field(
        description="Pod whose end lets most of the waiting pods start; null where no single end does."
    )
    to_add: list[NodesToAdd] = Field(description="Alternatives, fewest nodes first.")


class MovedPod(Answer):
    """A pod that a plan evicts from its node."""

    namespace: str
    name: str
    workload: str = Field(description="Its owner as Kind/name; empty for a pod that nothing makes again.")
    devices: int
    uuids: list[str] = Field(description="Devices that it holds on the node.")
    node: str | None = Field(description="Node where it goes; null where it waits.")
    state: Literal["moves", "waits", "open", "blocked"] = Field(
        description="open: objects that decide are not known. blocked: a disruption budget refuses its eviction."
    )
    reason: InBothLanguages | None = Field(description="Reason why it waits, or is not evicted.")
    budgets: list[str] = Field(description="Disruption budgets that select it, as NAMESPACE/NAME.")


class DrainPlan(Answer):
    """Pods of a node placed elsewhere, one after the other. Nothing was written."""

    node: str
    sentence: InBothLanguages
    moves: int
    waits: int
    blocked: int = Field(description="Pods that disruption budgets keep on the node.")
    pods: list[MovedPod] = Field(description="Pods by priority, number of devices and name, as they were placed.")
    remaining: int = Field(description="Pods that a drain leaves: of DaemonSets, and static ones.")
    has_budgets: bool = Field(description="False where disruption budgets were not read: none is respected then.")
    commands: list[str] = Field(description="Commands that carry the plan out, to read and run.")


class OpenedNode(Answer):
    """A waiting pod, and the moves that make a node take it."""

    pod: str
    node: str = Field(description="Node where it starts.")
    source: str | None = Field(description="Node that the pods leave, cordoned meanwhile; null where none moves.")
    moves: list[MovedPod] = Field(description="Pods in the order of their moves.")


class Defragmentation(Answer):
    """Fewest pods to move so that waiting pods start; each step was judged. Nothing was written."""

    name: str
    wanted: int
    starts: int = Field(description="Number of the wanted pods that start after the moves.")
    moves: int
    is_fewest: bool = Field(description="True where it is proved that fewer moves do not do.")
    sentence: InBothLanguages
    obstacle: InBothLanguages | None = Field(description="Reason why the next pod waits; null where all start.")
    nodes: list[OpenedNode] = Field(description="Wanted pods that start, in their order.")
    has_budgets: bool = Field(description="False where disruption budgets were not read: none is respected then.")
    commands: list[str] = Field(description="Commands that carry the plan out, to read and run.")


class NodesToBuy(Answer):
    """A number of nodes of one kind, and the waiting pods that start with them."""

    like: str = Field(description="Node of the cluster with the same devices.")
    models: list[str]
    nodes: int
    pods: int
    names: list[str] = Field(description="The pods, as NAMESPACE/NAME.")


class UnhelpedPods(Answer):
    """Waiting pods that start on no added node, for one reason."""

    reason: InBothLanguages | None
    pods: int
    names: list[str] = Field(description="The pods, as NAMESPACE/NAME.")


class Purchase(Answer):
    """Nodes to add so that waiting pods start, by kind. Nothing was written."""

    waiting: int
    judged: int = Field(description="Waiting pods that were judged, those of the highest priority.")
    starts: int = Field(description="Judged pods that start as things are.")
    sentence: InBothLanguages
    to_add: list[NodesToBuy] = Field(description="Alternatives: those that let most pods start first.")
    not_helped: list[UnhelpedPods] = Field(description="By reason, most pods first.")


ANSWERS: Final = (Fits, DrainPlan, Defragmentation, Purchase)
"""Each has a JSON Schema of its own."""
