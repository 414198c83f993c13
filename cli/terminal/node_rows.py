"""Rows of the nodes of an attempt, a group of equally judged ones in each. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from page.views.answered_nodes import answered_nodes
from page.views.node_groups import PICKED, UNREGISTERED, NodeGroup

_VERDICTS: Final = {PICKED: "chosen", UNREGISTERED: "not registered"}
SHOWN_NAMES: Final = 3


def to_node_rows(nodes: Sequence[Mapping[str, Any]], chosen: str | None, *, is_wide: bool) -> list[list[str]]:
    """Number of nodes, verdict, why, names: of ``filter.nodes``. All names where ``is_wide``."""
    return [
        [
            f"{len(node.nodes):,}",
            _VERDICTS.get(node.verdict, node.verdict),
            _explain_verdict(node),
            _join_names(node.nodes, is_wide),
        ]
        for node in answered_nodes(nodes, chosen)
    ]


def _join_names(names: Sequence[str], is_wide: bool) -> str:
    more = 0 if is_wide else len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + f" +{more:,}" if more > 0 else ", ".join(names)


def _explain_verdict(group: NodeGroup) -> str:
    if group.scores:
        low, high = min(group.scores), max(group.scores)
        return f"score {low:g}" if low == high else f"scores {low:g} to {high:g}"
    if group.is_refused and group.container:
        return f"{group.container}: {group.reason or 'failed'}"
    return group.reason
