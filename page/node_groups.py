"""The nodes of an attempt, grouped by identical refusal: thousands of nodes become a handful of groups.

Where refusals differ in their counts alone, and there are too many of them to read, those with the same reasons are one
group, which gives the least and the greatest count of each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from schemas.events import FITS, NOT_REACHED, PICKED, AttemptSummarized, Refusal

MAX_GROUPS: Final = 24
"""Of more, those with the same reasons become one."""
_ORDER: Final = {PICKED: 0, FITS: 1, NOT_REACHED: 3}
"""What was chosen first; refusals between what fits and what was not looked at."""

GroupKey = tuple[int, int, int]
"""Codes of verdict, container and refusal: the same for all nodes of a group."""


@dataclass(frozen=True, slots=True)
class CountedCode:
    code: str
    min_count: int
    max_count: int
    """Of how many devices of a node; the same as ``min_count`` where all nodes have as many."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    key: str
    verdict: str
    container: str
    """The one that was refused; empty where none was."""
    refusal: Refusal | None
    """Of the most of its nodes, where they differ."""
    counts: list[CountedCode]
    """The most frequent first."""
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
    if len(rows) <= MAX_GROUPS:
        return _sorted(_group(attempt, [key], found) for key, found in rows.items())
    merged: dict[tuple[object, ...], list[GroupKey]] = {}
    for key in rows:
        merged.setdefault(_without_counts(attempt, key), []).append(key)
    return _sorted(
        _group(attempt, sorted(keys, key=lambda key: -len(rows[key])), [row for key in keys for row in rows[key]])
        for keys in merged.values()
    )


def _without_counts(attempt: AttemptSummarized, key: GroupKey) -> tuple[object, ...]:
    verdict, container, refusal = key
    if refusal < 0:
        return verdict, container
    found = attempt.refusals[refusal]
    return verdict, container, found.bare, *sorted(found.counts)


def _sorted(groups: Iterable[NodeGroup]) -> list[NodeGroup]:
    return sorted(groups, key=lambda each: (_ORDER.get(each.verdict, 2), -len(each.nodes), each.key))


def _group(attempt: AttemptSummarized, keys: Sequence[GroupKey], rows: Sequence[int]) -> NodeGroup:
    verdict, container, refusal = keys[0]
    rows = sorted(rows, key=attempt.nodes.__getitem__)
    word = attempt.verdicts[verdict]
    return NodeGroup(
        key=".".join(map(str, keys[0])),
        verdict=word,
        container=attempt.requests[container].container if 0 <= container < len(attempt.requests) else "",
        refusal=attempt.refusals[refusal] if refusal >= 0 else None,
        counts=_counts([attempt.refusals[key[2]] for key in keys if key[2] >= 0]),
        nodes=[attempt.nodes[row] for row in rows],
        scores=[float(str(attempt.score[row])) for row in rows] if word in (PICKED, FITS) else [],
    )


def _counts(refusals: Sequence[Refusal]) -> list[CountedCode]:
    counted: dict[str, list[int]] = {}
    for refusal in refusals:
        for code, count in refusal.counts.items():
            counted.setdefault(code, []).append(count)
    found = [CountedCode(code, min(counts), max(counts)) for code, counts in counted.items()]
    return sorted(found, key=lambda each: (-each.max_count, each.code))


def codes_of(groups: Sequence[NodeGroup]) -> list[str]:
    """Every reason of the groups' devices, the most frequent first: its place is its colour."""
    found: dict[str, int] = {}
    for group in groups:
        for code in group.cells:
            if code != FITS:
                found[code] = found.get(code, 0) + len(group.nodes)
    return sorted(found, key=lambda code: (-found[code], code))
