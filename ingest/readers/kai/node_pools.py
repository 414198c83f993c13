"""Pools of nodes, by the nodes' label, as KAI divides them; a scheduler serves one of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ingest.readers.kai.devices import parse_labels

POOL_LABEL: Final = "kai.scheduler/node-pool"
"""KAI's default; that of v0.9.4 is empty, and such a scheduler looks at all nodes."""


@dataclass(frozen=True, slots=True)
class NodePools:
    by_node: Mapping[str, str] = field(default_factory=dict)
    """The pool of each node of a node list; empty for a node without the label."""
    label: str = POOL_LABEL
    served: str = ""
    """The scheduler's pool; empty where only the log may name it."""

    def describe_contradiction(self, node: str, named: str) -> str:
        """Describe the evidence that the node is in another pool than the scheduler's; empty if there is none.

        ``named``: the scheduler's pool as its log names it.
        """
        served, pool = self.served or named, self.by_node.get(node)
        if not served or pool is None or pool == served:
            return ""
        has = f"has {self.label}={pool}" if pool else f"has no label {self.label}"
        return f"{node} {has}; the scheduler serves the pool {served}"


def parse_pool_labels(node_list: bytes, label: str = POOL_LABEL) -> dict[str, str]:
    """Parse the pool of each node from ``kubectl get nodes -o json``. Raises ``ValueError``."""
    return {name: labels.get(label, "") for name, labels in parse_labels(node_list)}
