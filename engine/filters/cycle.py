"""One scheduling cycle: the pod, the cluster and the release, and what a plugin makes of them before the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from engine.filters.release import LATEST, SchedulerRelease
from engine.filters.verdicts import PluginRefusal, Unjudged, Verdict
from engine.snapshot.fields import FieldError, Object, RejectedObject, read_mapping
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod, read_pod
from engine.snapshot.requests import Amounts, request_to_place
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


def start_cycle(snapshot: Snapshot, pod: Any, release: SchedulerRelease = LATEST) -> SchedulingCycle | RejectedObject:
    """Read a Pod object that waits; a malformed one is rejected, with the field and the cause."""
    if not isinstance(pod, dict):
        return RejectedObject("Pod", "", "", "", "is not an object")
    try:
        return SchedulingCycle(snapshot, read_pod(pod), read_mapping(pod, "spec"), request_to_place(pod), release)
    except FieldError as error:
        metadata = pod.get("metadata")
        names = metadata if isinstance(metadata, dict) else {}
        namespace, name = (str(names.get(key, "")) for key in ("namespace", "name"))
        return RejectedObject("Pod", namespace, name, error.path, error.cause)


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
