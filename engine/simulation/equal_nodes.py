"""Nodes that are equal to every filter, for a pod without rules about labels, volumes, ports and other pods.

Such a pod is judged on one node of each kind; a fleet has few kinds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import Fields

_DISTINGUISHING = ("affinity", "nodeName", "nodeSelector", "resourceClaims", "topologySpreadConstraints", "volumes")
"""Fields of a pod's spec by which filters tell nodes apart that are equal in their own state."""


@dataclass(frozen=True, slots=True)
class NodeKinds:
    """Nodes of a snapshot by their kind."""

    snapshot: Snapshot
    """Snapshot with the first node of each kind only."""
    first: Mapping[str, str]
    """Name of the first node of its kind, by the name of each node."""

    def list_equal(self, firsts: Sequence[str]) -> tuple[str, ...]:
        """List the nodes of these kinds, in the order of the snapshot."""
        wanted = frozenset(firsts)
        return tuple(name for name, first in self.first.items() if first in wanted)


class NodeKindReader:
    """Groups the nodes of snapshots; those of the latest one are grouped once for all pods."""

    def __init__(self) -> None:
        """Start without groups."""
        self._latest: tuple[Mapping[str, NodeInfo], NodeKinds | None] | None = None

    def read(self, snapshot: Snapshot) -> NodeKinds | None:
        """Group the nodes; None where pods are nominated or have rules against others, which are about single nodes."""
        if self._latest is None or self._latest[0] is not snapshot.nodes:
            self._latest = snapshot.nodes, _group_nodes(snapshot)
        return self._latest[1]


def is_about_amounts(spec: Fields) -> bool:
    """Tell whether the filters judge a pod by the state of each node only."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    has_ports = any(container.get("ports") for container in containers if isinstance(container, Mapping))
    return not has_ports and not any(spec.get(field) for field in _DISTINGUISHING)


def _group_nodes(snapshot: Snapshot) -> NodeKinds | None:
    if snapshot.nominated or any(map(_has_rules, snapshot.pods.values())):
        return None
    firsts: dict[object, str] = {}
    first = {name: firsts.setdefault(_describe(info), name) for name, info in snapshot.nodes.items()}
    nodes = {name: snapshot.nodes[name] for name in firsts.values()}
    return NodeKinds(replace(snapshot, nodes=nodes), first)


def _has_rules(pod: Pod) -> bool:
    return bool(pod.anti_affinity)


def _describe(info: NodeInfo) -> object:
    """Describe what filters compare of a node's own state."""
    node = info.node
    amounts = frozenset(node.allocatable.items()), frozenset(info.requested.items()), len(info.pods)
    return node.is_unschedulable, node.taints, node.declared_features, amounts
