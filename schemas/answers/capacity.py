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
    """A pod that a drained node loses."""

    namespace: str
    name: str
    workload: str = Field(description="Its owner as Kind/name; empty for a pod that nothing makes again.")
    devices: int
    uuids: list[str] = Field(description="Devices that it holds on the node.")
    node: str | None = Field(description="Node where it goes; null where it waits.")
    state: Literal["moves", "waits", "open"] = Field(description="open: objects that decide are not known.")
    reason: InBothLanguages | None = Field(description="Reason why it waits.")


class DrainPlan(Answer):
    """Pods of a node placed elsewhere, one after the other. Nothing was written."""

    node: str
    sentence: InBothLanguages
    moves: int
    waits: int
    pods: list[MovedPod] = Field(description="Pods by priority, number of devices and name, as they were placed.")
    remaining: int = Field(description="Pods that a drain leaves: of DaemonSets, and static ones.")


ANSWERS: Final = (Fits, DrainPlan)
"""Each has a JSON Schema of its own."""
