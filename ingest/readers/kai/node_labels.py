"""Labels of nodes by which KAI counts their memory and divides them into pools, read from a list of the nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
POOL_LABEL: Final = "kai.scheduler/node-pool"
"""KAI's default; that of v0.9.4 is empty, and such a scheduler looks at all nodes."""


@dataclass(frozen=True, slots=True)
class NodePools:
    """Pools of the nodes; a scheduler serves one of them."""

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
    return {name: labels.get(label, "") for name, labels in _parse_labels(node_list)}


def parse_memory_labels(node_list: bytes) -> dict[str, int]:
    """Parse each node's label ``nvidia.com/gpu.memory`` from ``kubectl get nodes -o json``. Raises ``ValueError``."""
    amounts = ((name, labels.get(MEMORY_LABEL, "")) for name, labels in _parse_labels(node_list))
    return {name: int(memory) for name, memory in amounts if memory.isascii() and memory.isdecimal()}


def _parse_labels(node_list: bytes) -> list[tuple[str, dict[str, str]]]:
    """Parse the name and the labels of each node of a node list in JSON. Raises ``ValueError``."""
    try:
        parsed = orjson.loads(node_list)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error}): write it with `kubectl get nodes -o json`") from None
    items = parsed.get("items", [parsed]) if isinstance(parsed, dict) else None
    if not isinstance(items, list):
        raise ValueError("not a list of nodes: write it with `kubectl get nodes -o json`")
    return [labels for node in items if (labels := _parse_node_labels(node))]


def _parse_node_labels(node: Any) -> tuple[str, dict[str, str]] | None:
    metadata = node.get("metadata") if isinstance(node, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name := metadata.get("name"), str):
        return None
    labels = metadata.get("labels")
    entries = labels if isinstance(labels, dict) else {}
    return name, {key: value for key, value in entries.items() if isinstance(value, str)}
