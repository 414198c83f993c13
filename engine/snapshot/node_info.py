"""A node together with the pods on it and the sums that kube-scheduler keeps of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.snapshot.nodes import Node
from engine.snapshot.pods import HostPortBinding, Pod
from engine.snapshot.requests import Amounts


@dataclass(frozen=True, slots=True, eq=False)
class NodeInfo:
    """A node, its pods, and their requests added up."""

    node: Node
    pods: tuple[Pod, ...]
    requested: Amounts
    host_ports: frozenset[HostPortBinding]

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.node.name

    def with_pods(self, pods: Iterable[Pod]) -> "NodeInfo":
        """Return the state with more pods on the node."""
        return build_node_info(self.node, (*self.pods, *pods))

    def without_pods(self, pods: Iterable[Pod]) -> "NodeInfo":
        """Return the state without some of its pods."""
        removed = {id(pod) for pod in pods}
        return build_node_info(self.node, [pod for pod in self.pods if id(pod) not in removed])

    def with_node(self, node: Node) -> "NodeInfo":
        """Return the state after a change of the Node object."""
        return replace(self, node=node)


def build_node_info(node: Node, pods: Sequence[Pod]) -> NodeInfo:
    """Add up what pods hold on a node."""
    requested: dict[str, int] = {}
    host_ports: list[HostPortBinding] = []
    for pod in pods:
        for resource, amount in pod.request.items():
            requested[resource] = requested.get(resource, 0) + amount
        host_ports.extend(pod.host_ports)
    return NodeInfo(node, tuple(pods), requested, frozenset(host_ports))
