"""The nodes of an attempt's columns, grouped by identical refusal."""

from engine.summaries.text import write_refusal
from page.views.node_groups import NodeGroup, SharedRefusal, node_group, readable
from schemas.events import AttemptSummarized, Refusal

GroupKey = tuple[int, int, int]
"""Codes of verdict, container and refusal: the same for all nodes of a group."""


def summarized_nodes(attempt: AttemptSummarized) -> list[NodeGroup]:
    """Every node of the attempt, in groups as ``readable`` orders them."""
    columns = zip(attempt.verdict.tolist(), attempt.refused_by.tolist(), attempt.refusal.tolist(), strict=True)
    rows: dict[GroupKey, list[int]] = {}
    for row, key in enumerate(columns):
        rows.setdefault(key, []).append(row)
    return readable([_group(attempt, key, found) for key, found in rows.items()])


def _group(attempt: AttemptSummarized, key: GroupKey, rows: list[int]) -> NodeGroup:
    verdict, container, refusal = key
    return node_group(
        ".".join(map(str, key)),
        attempt.verdicts[verdict],
        attempt.requests[container].container if 0 <= container < len(attempt.requests) else "",
        _refusal(attempt.refusals[refusal]) if refusal >= 0 else None,
        # A 32-bit float as it is written, not with the digits that 64 bits add to it.
        ((attempt.nodes[row], float(str(attempt.score[row]))) for row in rows),
    )


def _refusal(refusal: Refusal) -> SharedRefusal:
    return SharedRefusal(refusal.counts, refusal.devices, "" if refusal.counts else write_refusal(refusal))
