"""Nodes of an attempt, grouped by identical refusal: thousands of nodes become a handful of groups.

If refusals differ only in their counts, and there are too many of them to read, those with the same reasons are one
group, which gives the least and the greatest count of each.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from page.views.amounts import choose_name_key, to_natural_order

PICKED: Final = "picked"
FITS: Final = "fits"
NOT_REACHED: Final = "not reached"
UNREGISTERED: Final = "unregistered"
"""Verdicts as ``schemas.events`` has them, which takes a terminal too long to import; a test compares them."""

SCORED: Final = (PICKED, FITS)
"""Verdicts of nodes that have a score."""
MAX_GROUPS: Final = 24
"""Limit of the groups: above it, groups with the same reasons become one."""
_ORDER: Final = {PICKED: 0, FITS: 1, NOT_REACHED: 3}
"""Order of the groups: the chosen node first; refusals between nodes that fit and nodes that were not reached."""


class SharedRefusal(NamedTuple):
    counts: Mapping[str, int]
    """Number of a node's devices per reason code."""
    devices: int = 0
    """Number of a node's devices."""
    words: str = ""
    """A reason that counts no devices."""


class CountedCode(NamedTuple):
    code: str
    min_count: int
    max_count: int
    """Greatest number of devices of a node; equal to ``min_count`` if all nodes have as many."""


class NodeGroup(NamedTuple):
    key: str
    verdict: str
    container: str
    """Container that was refused; empty if none was."""
    refusal: SharedRefusal | None
    """Refusal of most of its nodes, if they differ."""
    counts: list[CountedCode]
    """Codes, the most frequent first."""
    nodes: list[str]
    """Names, sorted."""
    scores: list[float]
    """Score of each node that fits; empty for others."""

    @property
    def is_refused(self) -> bool:
        return self.verdict not in (PICKED, FITS, NOT_REACHED)

    @property
    def reason(self) -> str:
        """Reason as HAMi writes it: ``1/8 CardCordoned, 2/8 NumaNotFit``; ``2–5/8 NumaNotFit`` if nodes differ."""
        if self.refusal is None or not self.counts:
            return self.words
        return ", ".join(sorted(f"{_format_range(count)}/{self.refusal.devices} {count.code}" for count in self.counts))

    @property
    def cells(self) -> list[str]:
        """Result of each device of a node, the most frequent first: a reason, or the verdict of the node.

        Empty if nothing counts its devices.
        """
        if self.refusal is None or not self.refusal.devices:
            return []
        counted = sorted(self.refusal.counts.items(), key=lambda item: (-item[1], item[0]))
        cells = [code for code, count in counted for _ in range(count)][: self.refusal.devices]
        # Devices that passed each check, and were too few.
        return cells + [FITS] * (self.refusal.devices - len(cells))

    @property
    def words(self) -> str:
        """Reason that counts no devices."""
        return self.refusal.words if self.refusal else ""


def build_node_group(
    key: str, verdict: str, container: str, refusal: SharedRefusal | None, scored: Iterable[tuple[str, float]]
) -> NodeGroup:
    """Build a group of nodes that were judged alike to the last count; ``scored`` has each with its score, in any
    order."""
    nodes = list(scored)
    order = choose_name_key([name for name, _ in nodes])
    nodes.sort(key=lambda node: order(node[0]))
    return NodeGroup(
        key=key,
        verdict=verdict,
        container=container,
        refusal=refusal,
        counts=_count_codes([refusal] if refusal else []),
        nodes=[name for name, _ in nodes],
        scores=[score for _, score in nodes] if verdict in SCORED else [],
    )


def arrange_groups(groups: Sequence[NodeGroup]) -> list[NodeGroup]:
    """Merge and sort the groups until they are few enough to read: the chosen node, fitting nodes, refusals by number
    of nodes, then nodes that were not reached."""
    if len(groups) > MAX_GROUPS:
        alike: dict[tuple[object, ...], list[NodeGroup]] = {}
        for group in groups:
            alike.setdefault(_without_counts(group), []).append(group)
        groups = [_merge_groups(members) for members in alike.values()]
    # The key is no criterion, because it differs for equal groups from an answer and from columns.
    return sorted(
        groups,
        key=lambda group: (
            _ORDER.get(group.verdict, 2),
            -len(group.nodes),
            group.reason,
            *map(to_natural_order, group.nodes[:1]),
        ),
    )


def list_codes(groups: Sequence[NodeGroup]) -> list[str]:
    """List every reason of the groups' devices, the most frequent first."""
    node_counts: dict[str, int] = {}
    for group in groups:
        for code in group.cells:
            if code != FITS:
                node_counts[code] = node_counts.get(code, 0) + len(group.nodes)
    return sorted(node_counts, key=lambda code: (-node_counts[code], code))


def _without_counts(group: NodeGroup) -> tuple[object, ...]:
    if group.refusal is None:
        return group.verdict, group.container
    # Counts out of 8 devices and out of 16 have no range in common.
    return group.verdict, group.container, group.words, group.refusal.devices, *sorted(group.refusal.counts)


def _merge_groups(groups: Sequence[NodeGroup]) -> NodeGroup:
    greatest = max(groups, key=lambda group: len(group.nodes))
    if len(groups) == 1:
        return greatest
    names = [name for group in groups for name in group.nodes]
    return greatest._replace(
        counts=_count_codes([group.refusal for group in groups if group.refusal]),
        nodes=sorted(names, key=choose_name_key(names)),
    )


def _count_codes(refusals: Sequence[SharedRefusal]) -> list[CountedCode]:
    counted: dict[str, list[int]] = {}
    for refusal in refusals:
        for code, count in refusal.counts.items():
            counted.setdefault(code, []).append(count)
    codes = [CountedCode(code, min(counts), max(counts)) for code, counts in counted.items()]
    return sorted(codes, key=lambda reason: (-reason.max_count, reason.code))


def _format_range(counted: CountedCode) -> str:
    low, high = counted.min_count, counted.max_count
    return str(high) if low == high else f"{low}–{high}"
