"""The nodes of an attempt, grouped by identical refusal: thousands of nodes become a handful of groups.

Where refusals differ in their counts alone, and there are too many of them to read, those with the same reasons are one
group, which gives the least and the greatest count of each.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from page.views.natural_order import natural_order

PICKED: Final = "picked"
FITS: Final = "fits"
NOT_REACHED: Final = "not reached"
UNREGISTERED: Final = "unregistered"
"""The verdicts as ``schemas.events`` has them, which takes a terminal too long to import; a test compares them."""

MAX_GROUPS: Final = 24
"""Where there are more, those with the same reasons become one."""
_ORDER: Final = {PICKED: 0, FITS: 1, NOT_REACHED: 3}
"""What was chosen first; refusals between what fits and what was not looked at."""


class SharedRefusal(NamedTuple):
    counts: Mapping[str, int]
    """Reason code to the number of devices of a node."""
    devices: int = 0
    """How many devices a node has."""
    words: str = ""
    """A reason that counts no devices."""


class CountedCode(NamedTuple):
    code: str
    min_count: int
    max_count: int
    """The greatest number of devices of a node; the same as ``min_count`` where all nodes have as many."""


class NodeGroup(NamedTuple):
    key: str
    verdict: str
    container: str
    """The one that was refused; empty where none was."""
    refusal: SharedRefusal | None
    """The refusal of most of its nodes, where they differ."""
    counts: list[CountedCode]
    """The most frequent first."""
    nodes: list[str]
    """By name."""
    scores: list[float]
    """The score of each node that fits; empty for others."""

    @property
    def is_refused(self) -> bool:
        return self.verdict not in (PICKED, FITS, NOT_REACHED)

    @property
    def reason(self) -> str:
        """As HAMi writes it: ``1/8 CardCordoned, 2/8 NumaNotFit``; ``2–5/8 NumaNotFit`` where nodes differ."""
        if self.refusal is None or not self.counts:
            return self.words
        return ", ".join(sorted(f"{_range(count)}/{self.refusal.devices} {count.code}" for count in self.counts))

    @property
    def cells(self) -> list[str]:
        """What each device of a node came to, the most frequent first: a reason, or the verdict of the node.

        Empty where nothing counts its devices.
        """
        if self.refusal is None or not self.refusal.devices:
            return []
        counted = sorted(self.refusal.counts.items(), key=lambda item: (-item[1], item[0]))
        cells = [code for code, count in counted for _ in range(count)][: self.refusal.devices]
        # Those that passed each check, and were too few.
        return cells + [FITS] * (self.refusal.devices - len(cells))

    @property
    def words(self) -> str:
        """The reason that counts no devices."""
        return self.refusal.words if self.refusal else ""


def node_group(
    key: str, verdict: str, container: str, refusal: SharedRefusal | None, scored: Iterable[tuple[str, float]]
) -> NodeGroup:
    """Nodes that were judged alike to the last count; ``scored`` has each with its score, in any order."""
    nodes = sorted(scored, key=lambda node: natural_order(node[0]))
    return NodeGroup(
        key=key,
        verdict=verdict,
        container=container,
        refusal=refusal,
        counts=_counts([refusal] if refusal else []),
        nodes=[name for name, _ in nodes],
        scores=[score for _, score in nodes] if verdict in (PICKED, FITS) else [],
    )


def readable(groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Few enough to read: the chosen node, those that fit, then refusals by number of nodes, then what was not seen."""
    if len(groups) > MAX_GROUPS:
        alike: dict[tuple[object, ...], list[NodeGroup]] = {}
        for group in groups:
            alike.setdefault(_without_counts(group), []).append(group)
        groups = [_merged(found) for found in alike.values()]
    # Not by the key, which is another one for the same group where the nodes come from an answer.
    return sorted(
        groups,
        key=lambda group: (
            _ORDER.get(group.verdict, 2),
            -len(group.nodes),
            group.reason,
            *map(natural_order, group.nodes[:1]),
        ),
    )


def codes_of(groups: Sequence[NodeGroup]) -> list[str]:
    """Every reason of the groups' devices, the most frequent first: its place is its colour."""
    found: dict[str, int] = {}
    for group in groups:
        for code in group.cells:
            if code != FITS:
                found[code] = found.get(code, 0) + len(group.nodes)
    return sorted(found, key=lambda code: (-found[code], code))


def _without_counts(group: NodeGroup) -> tuple[object, ...]:
    if group.refusal is None:
        return group.verdict, group.container
    # Counts out of 8 devices and out of 16 have no range in common.
    return group.verdict, group.container, group.words, group.refusal.devices, *sorted(group.refusal.counts)


def _merged(groups: Sequence[NodeGroup]) -> NodeGroup:
    greatest = max(groups, key=lambda group: len(group.nodes))
    if len(groups) == 1:
        return greatest
    return greatest._replace(
        counts=_counts([group.refusal for group in groups if group.refusal]),
        nodes=sorted((name for group in groups for name in group.nodes), key=natural_order),
    )


def _counts(refusals: Sequence[SharedRefusal]) -> list[CountedCode]:
    counted: dict[str, list[int]] = {}
    for refusal in refusals:
        for code, count in refusal.counts.items():
            counted.setdefault(code, []).append(count)
    found = [CountedCode(code, min(counts), max(counts)) for code, counts in counted.items()]
    return sorted(found, key=lambda reason: (-reason.max_count, reason.code))


def _range(counted: CountedCode) -> str:
    low, high = counted.min_count, counted.max_count
    return str(high) if low == high else f"{low}–{high}"
