"""The nodes of an attempt, grouped by identical refusal: thousands of nodes become a handful of groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemas.events import FITS, NOT_REACHED, PICKED, AttemptSummarized, Refusal

EXAMPLES: Final = 3
_ORDER: Final = {PICKED: 0, FITS: 1, NOT_REACHED: 3}
"""What was chosen first; refusals between what fits and what was not looked at."""

GroupKey = tuple[int, int, int]
"""Codes of verdict, container and refusal: the same for all nodes of a group."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    key: str
    verdict: str
    container: str
    """The one that was refused; empty where none was."""
    refusal: Refusal | None
    nodes: list[str]
    """By name."""
    scores: list[float]
    """Of each node that fits; empty for others."""

    @property
    def is_refused(self) -> bool:
        return self.verdict not in (PICKED, FITS, NOT_REACHED)

    @property
    def cells(self) -> list[str]:
        """What each device of a node came to, the most frequent first: a reason, or the verdict of the node.

        Empty where nothing counts its devices.
        """
        if self.refusal is None or not self.refusal.devices:
            return []
        counted = sorted(self.refusal.counts.items(), key=lambda each: (-each[1], each[0]))
        cells = [code for code, count in counted for _ in range(count)][: self.refusal.devices]
        # Those that passed each check, and were too few.
        return cells + [FITS] * (self.refusal.devices - len(cells))

    @property
    def words(self) -> str:
        """The reason that counts no devices."""
        return self.refusal.bare if self.refusal else ""


def node_groups(attempt: AttemptSummarized) -> list[NodeGroup]:
    """The chosen node, those that fit, then refusals by number of nodes, and what was not looked at."""
    columns = zip(attempt.verdict.tolist(), attempt.refused_by.tolist(), attempt.refusal.tolist(), strict=True)
    rows: dict[GroupKey, list[int]] = {}
    for row, key in enumerate(columns):
        rows.setdefault(key, []).append(row)
    groups = [_group(attempt, key, found) for key, found in rows.items()]
    return sorted(groups, key=lambda each: (_ORDER.get(each.verdict, 2), -len(each.nodes), each.key))


def _group(attempt: AttemptSummarized, key: GroupKey, rows: Sequence[int]) -> NodeGroup:
    verdict, container, refusal = key
    rows = sorted(rows, key=attempt.nodes.__getitem__)
    word = attempt.verdicts[verdict]
    return NodeGroup(
        key=".".join(map(str, key)),
        verdict=word,
        container=attempt.requests[container].container if 0 <= container < len(attempt.requests) else "",
        refusal=attempt.refusals[refusal] if refusal >= 0 else None,
        nodes=[attempt.nodes[row] for row in rows],
        scores=[float(str(attempt.score[row])) for row in rows] if word in (PICKED, FITS) else [],
    )


def codes_of(groups: Sequence[NodeGroup]) -> list[str]:
    """Every reason of the groups' devices, the most frequent first: its place is its colour."""
    found: dict[str, int] = {}
    for group in groups:
        for code in group.cells:
            if code != FITS:
                found[code] = found.get(code, 0) + len(group.nodes)
    return sorted(found, key=lambda code: (-found[code], code))
