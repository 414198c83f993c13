"""Compares the counts of device rows with those of the node records, in numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.events import (
    NOT_REASONS,
    Refusal,
)
from summaries.tally import Ints, Tally


class NodeColumns(NamedTuple):
    """What the node records say, an entry per node."""

    nodes: Sequence[str]
    refused_by: Ints
    refusal: Ints
    """Index into ``refusals``; -1 for none."""
    refusals: Sequence[Refusal]


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Counts per node and code, sorted by both: entry ``i`` says ``count[i]`` rows of node ``node[i]``."""

    node: Ints
    code: Ints
    count: Ints


def recount(nodes: NodeColumns, tallies: Sequence[Tally]) -> dict[int, Refusal]:
    """Where the device rows count otherwise than the node records say: the node's position and the rows' own refusal.

    Nodes whose devices are not all reported, nodes refused without counts and containers that did not refuse are
    left out.
    """
    tallies = [each for each in tallies if not each.is_partial]
    if not tallies or not nodes.nodes:
        return {}
    words, pairs, known, devices = _by_node(nodes, tallies)
    wrong = known & _differ(nodes, words, pairs, devices)
    return {node: _counted(node, words, pairs, int(devices[node])) for node in np.flatnonzero(wrong).tolist()}


def _by_node(
    nodes: NodeColumns, tallies: Sequence[Tally]
) -> tuple[dict[str, int], _Pairs, npt.NDArray[np.bool_], Ints]:
    """The pairs of the container that refused each node; which nodes have rows; their ``Y``."""
    position = _positions(nodes.nodes, tallies)
    container = np.repeat([each.container for each in tallies], [len(each.nodes) for each in tallies])
    rows = np.concatenate([each.rows for each in tallies])
    # HAMi evaluates containers in order and stops at the first that fails: its rows alone explain the refusal.
    counts = (position >= 0) & (rows > 0) & (nodes.refused_by[position] == container)
    known = np.zeros(len(nodes.nodes), dtype=np.bool_)
    devices = np.zeros(len(nodes.nodes), dtype=np.int64)
    known[position[counts]] = True
    devices[position[counts]] = np.concatenate([each.devices for each in tallies])[counts]
    words, code = _one_table(tallies)
    starts = np.cumsum([0, *(len(each.nodes) for each in tallies)])[:-1]
    owner = np.concatenate([each.owner + start for each, start in zip(tallies, starts.tolist(), strict=True)])
    keep = counts[owner] & (code >= 0)
    count = np.concatenate([each.count for each in tallies])
    return words, _sorted(position[owner[keep]], code[keep], count[keep]), known, devices


def _positions(known: Sequence[str], tallies: Sequence[Tally]) -> Ints:
    """Per node of the tallies, where it stands among ``known``; -1 for what is not there."""
    places: dict[str, int] = {}
    columns = []
    container, place = -1, 0
    for each in tallies:
        # A scheduler judges the nodes in the order of its node records, container by container: comparing a run of
        # names costs a tenth of looking each of them up.
        place = place if each.container == container else 0
        stop = place + len(each.nodes)
        if known[place:stop] == each.nodes:
            columns.append(np.arange(place, stop))
        else:
            # Reversed: of a name that occurs twice, the first place counts.
            places = places or {known[place]: place for place in range(len(known) - 1, -1, -1)}
            columns.append(np.array([places.get(name, -1) for name in each.nodes], dtype=np.int64))
        container, place = each.container, int(columns[-1][-1]) + 1 if len(columns[-1]) else place
    return np.concatenate(columns)


def _one_table(tallies: Sequence[Tally]) -> tuple[dict[str, int], Ints]:
    """Reason codes of all records in one table, and the column of all pairs that points into it; -1 is no reason."""
    words: dict[str, int] = {}
    columns = []
    for each in tallies:
        moved = [-1 if word in NOT_REASONS else words.setdefault(word, len(words)) for word in each.words]
        columns.append(np.array([*moved, -1], dtype=np.int64)[each.code])
    return words, np.concatenate(columns)


def _sorted(node: Ints, code: Ints, count: Ints) -> _Pairs:
    # One combined key; ``np.lexsort`` would sort twice.
    order = np.argsort(node * (int(code.max(initial=0)) + 1) + code, kind="stable")
    node, code, count = node[order], code[order], count[order]
    # A node whose rows are spread over two records has a pair twice.
    first = np.ones(len(node), dtype=np.bool_)
    first[1:] = (node[1:] != node[:-1]) | (code[1:] != code[:-1])
    starts = np.flatnonzero(first)
    return _Pairs(node[starts], code[starts], np.add.reduceat(count, starts) if len(starts) else count)


def _differ(nodes: NodeColumns, words: dict[str, int], pairs: _Pairs, devices: Ints) -> npt.NDArray[np.bool_]:
    """Per node: do its pairs differ from the counts of its refusal?"""
    table = [_recorded(each, words) for each in nodes.refusals] + [None]
    # The last entry of each table is for -1, which numpy reads as the last index.
    size = np.array([-1 if recorded is None else len(recorded) for recorded in table])[nodes.refusal]
    recorded_devices = np.array([*(each.devices for each in nodes.refusals), 0], dtype=np.int64)[nodes.refusal]
    found = np.bincount(pairs.node, minlength=len(size))
    differ = (found != size) | (devices != recorded_devices)
    # Only where a node has as many pairs as its refusal can they be compared entry by entry; elsewhere the index would
    # run into the next refusal.
    same = np.flatnonzero(~differ[pairs.node])
    flat = np.array([entry for recorded in table for entry in recorded or ()], dtype=np.int64).reshape(-1, 2)
    begins = np.cumsum([0, *(len(recorded or ()) for recorded in table)])[:-1][nodes.refusal]
    # The place of each pair within its node, without a loop: its row less the row at which its node begins.
    rank = np.arange(len(pairs.node)) - (np.cumsum(found) - found)[pairs.node]
    entry = flat[(begins[pairs.node] + rank)[same]]
    unequal = (entry[:, 0] != pairs.code[same]) | (entry[:, 1] != pairs.count[same])
    differ[pairs.node[same[unequal]]] = True
    counts = np.array([*(not each.bare and not each.uncounted for each in nodes.refusals), True])[nodes.refusal]
    agrees: npt.NDArray[np.bool_] = ~differ | ~counts
    return ~agrees


def _recorded(refusal: Refusal, words: dict[str, int]) -> list[tuple[int, int]]:
    """The refusal as pairs of code and count, sorted; a code that no row has gets a place behind all that do."""
    return sorted(
        (words.get(code, len(words) + place), x) for place, (code, x) in enumerate(refusal.counts.items()) if x
    )


def _counted(node: int, words: dict[str, int], pairs: _Pairs, devices: int) -> Refusal:
    codes = list(words)
    begin, end = np.searchsorted(pairs.node, [node, node + 1])
    entries = zip(pairs.code[begin:end].tolist(), pairs.count[begin:end].tolist(), strict=True)
    return Refusal.model_construct(counts={codes[code]: count for code, count in entries}, devices=devices)
