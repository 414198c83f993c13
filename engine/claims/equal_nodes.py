"""Explanations of many nodes for the claims of one pod: equal nodes are explained once."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.claims.explanation import ExplainedNode, PooledDevice, explain_node, iterate_pooled_devices
from engine.claims.judge import ClaimsJudge
from engine.claims.node_keys import NodeKey, NodeKeyMaker
from engine.claims.pools import collect_pools
from engine.snapshot.fields import FieldError
from engine.snapshot.nodes import Node


class NodeExplanation(NamedTuple):
    """Devices of a node, in the order of the devices of an explanation that holds for them by their reasons."""

    explained: ExplainedNode
    """Explanation of this node or of an equal one; its texts may name devices and claims of that node."""
    devices: Sequence[PooledDevice]


class NodeExplainer:
    """Explains the devices of nodes."""

    def __init__(self, judge: ClaimsJudge, limit: int) -> None:
        """Start without explanations; ``limit``: nodes that are explained, equal ones counted once."""
        self.judge = judge
        self._keys = NodeKeyMaker(judge.inventory, judge.matcher, judge.pod_claims, with_held=True)
        self._explained: dict[NodeKey, ExplainedNode] = {}
        self._budget = limit

    def explain(self, node: Node) -> NodeExplanation | None:
        """Explain a node; None if it can't be read, or if the limit is reached."""
        try:
            pools, claims = collect_pools(self.judge.inventory, node), self.judge.list_asked(node) or ()
            key = self._keys.make_key(claims, pools)
        except FieldError:
            return None
        explained = self._explained.get(key) if key is not None else None
        if explained is None:
            if not self._budget:
                return None
            self._budget -= 1
            explained = explain_node(self.judge, node)
            if key is not None:
                self._explained[key] = explained
        return NodeExplanation(explained, tuple(iterate_pooled_devices(pools)))
