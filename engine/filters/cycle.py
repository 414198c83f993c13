"""One scheduling cycle: the pod, the cluster and the release, and what a plugin makes of them before the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from engine.filters.release import SchedulerRelease
from engine.filters.verdicts import PluginRefusal, Unjudged, Verdict
from engine.snapshot.fields import Object
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.requests import Amounts
from engine.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SchedulingCycle:
    """The pod that is to be placed and everything that decides on it."""

    snapshot: Snapshot
    pod: Pod
    spec: Object
    """The pod's spec as it was read."""
    request: Amounts
    """Request of the pod by its spec."""
    release: SchedulerRelease


class NodeCheck:
    """A plugin after its PreFilter: judges one node at a time.

    Where pods that are not on a node count as if they were (nominated pods), or the other way round (victims of a
    preemption), `with_pods` and `without_pods` give a check of that cluster. They change nothing by default.
    """

    __slots__ = ()

    @property
    def node_names(self) -> frozenset[str] | None:
        """Names of the only nodes to look at; None for all."""
        return None

    def judge(self, node: NodeInfo) -> Verdict:
        """Judge one node."""
        raise NotImplementedError

    def with_pods(self, pods: Sequence[Pod], node: NodeInfo) -> Self:
        """Return the check for a cluster with more pods on a node."""
        del pods, node
        return self

    def without_pods(self, pods: Sequence[Pod], node: NodeInfo) -> Self:
        """Return the check for a cluster without some pods of a node."""
        del pods, node
        return self


@dataclass(frozen=True, slots=True)
class Skipped:
    """A plugin with nothing to check for the pod."""


SKIPPED: Final = Skipped()
Prepared = NodeCheck | Skipped | PluginRefusal | Unjudged
"""Result of a plugin's PreFilter."""
