"""Nodes of an attempt's columns, grouped by identical refusal."""

from engine.summaries.text import write_refusal
from page.views.node_groups import SCORED, NodeGroup, SharedRefusal, arrange_groups, build_node_group
from schemas.events import AttemptSummarized, Refusal

GroupKey = tuple[int, int, int]
"""Codes of verdict, container and refusal: equal for all nodes of a group."""


def group_summarized_nodes(attempt: AttemptSummarized) -> list[NodeGroup]:
    """Group every node of the attempt, in the order of ``arrange_groups``."""
    columns = zip(attempt.verdict.tolist(), attempt.refused_by.tolist(), attempt.refusal.tolist(), strict=True)
    rows: dict[GroupKey, list[int]] = {}
    for row, key in enumerate(columns):
        rows.setdefault(key, []).append(row)
    return arrange_groups([_build_group(attempt, key, group_rows) for key, group_rows in rows.items()])


def _build_group(attempt: AttemptSummarized, key: GroupKey, rows: list[int]) -> NodeGroup:
    verdict, container, refusal = key
    # The text of a 32-bit float lacks the digits that 64 bits would add to it.
    has_scores = attempt.verdicts[verdict] in SCORED
    return build_node_group(
        ".".join(map(str, key)),
        attempt.verdicts[verdict],
        attempt.requests[container].container if 0 <= container < len(attempt.requests) else "",
        _to_shared_refusal(attempt.refusals[refusal]) if refusal >= 0 else None,
        ((attempt.nodes[row], float(str(attempt.score[row])) if has_scores else 0.0) for row in rows),
    )


def _to_shared_refusal(refusal: Refusal) -> SharedRefusal:
    return SharedRefusal(refusal.counts, refusal.devices, "" if refusal.counts else write_refusal(refusal))
