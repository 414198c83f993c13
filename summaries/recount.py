"""Compares the counts of device rows with those of the node records, in numpy.

The rows of a node are not counted code by code: every code has a random weight, and the weights of a node's rows are
added up. Where the sum is that of the counts in its record, the counts are equal, and only the other nodes are counted.
Unequal counts have equal sums in less than one of 2**40 attempts, and nobody can prepare such a record, because the
weights are drawn for each attempt. No array here is larger than the rows and tables that came, whatever a record
claims.
"""

from collections.abc import Mapping, Sequence
from secrets import token_bytes
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.events import NOT_REASONS, DevicesJudged, Refusal

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Sums = npt.NDArray[np.uint64]


class NodeColumns(NamedTuple):
    """What the node records say, an entry per node."""

    nodes: Sequence[str]
    refused_by: Ints
    refusal: Ints
    """Index into ``refusals``; -1 for none."""
    refusals: Sequence[Refusal]


class _Rows(NamedTuple):
    """The device rows. ``place`` and ``rows`` have an entry per node of the records, ``code`` one per row."""

    place: Ints
    """Where the node stands among those of the node records; -1 where its rows do not explain what became of it."""
    rows: Ints
    code: Ints
    """Index into the table of reason codes; -1 for a verdict that is no reason."""


def recount(nodes: NodeColumns, records: Sequence[DevicesJudged]) -> dict[int, Refusal]:
    """Where the device rows count otherwise than the node records say: the node's position and the rows' own refusal.

    Nodes whose devices are not all reported, nodes refused without counts and containers that did not refuse are
    left out.
    """
    records = [each for each in records if not each.partial]
    if not records or not nodes.nodes:
        return {}
    words, code = _one_table(records)
    rows = _Rows(_explained(nodes, records), np.concatenate([each.rows for each in records]), code)
    explains = rows.place >= 0
    known = np.zeros(len(nodes.nodes), dtype=np.bool_)
    devices = np.zeros(len(nodes.nodes), dtype=np.int64)
    known[rows.place[explains]] = True
    devices[rows.place[explains]] = np.concatenate([each.devices for each in records])[explains]
    wrong = known & _differ(nodes, words, rows, devices)
    return _counted(list(words), rows, devices, wrong) if wrong.any() else {}


def _explained(nodes: NodeColumns, records: Sequence[DevicesJudged]) -> Ints:
    """Per node of the records, which of ``nodes`` its rows explain; -1 for none."""
    place = _places(nodes.nodes, records)
    container = np.repeat([each.container for each in records], [len(each.nodes) for each in records])
    rows = np.concatenate([each.rows for each in records])
    # HAMi evaluates containers in order and stops at the first that fails: its rows alone explain the refusal.
    return np.where((rows > 0) & (nodes.refused_by[place] == container), place, -1)


def _places(known: Sequence[str], records: Sequence[DevicesJudged]) -> Ints:
    """Per node of the records, where it stands among ``known``; -1 for what is not there."""
    places: dict[str, int] = {}
    columns = []
    container, place = -1, 0
    for each in records:
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


def _one_table(records: Sequence[DevicesJudged]) -> tuple[dict[str, int], Ints]:
    """Reason codes of all records in one table, and the column of all rows that points into it; -1 is no reason."""
    words: dict[str, int] = {}
    columns = []
    for each in records:
        moved = [-1 if word in NOT_REASONS else words.setdefault(word, len(words)) for word in each.verdicts]
        columns.append(np.array(moved, dtype=np.int64)[each.verdict])
    return words, np.concatenate(columns)


def _differ(nodes: NodeColumns, words: dict[str, int], rows: _Rows, devices: Ints) -> Flags:
    """Per node: do its rows differ from the counts of its refusal?"""
    # Those of the rows first, as ``rows.code`` counts them.
    codes = [*words, *{code for refusal in nodes.refusals for code in refusal.counts if code not in words}]
    # The last weight is that of -1, which numpy reads as the last index: a row that is no reason weighs nothing.
    weights = np.append(np.frombuffer(token_bytes(8 * len(codes)), np.uint64), np.uint64(0))
    found = np.zeros(len(nodes.nodes), dtype=np.uint64)
    explains = rows.place >= 0
    # ``add.at``: a node whose rows are spread over two records has two sums.
    np.add.at(found, rows.place[explains], _sums(weights[rows.code], rows.rows)[explains])
    weight = dict(zip(codes, weights.tolist(), strict=False))
    recorded = [_weighed(each, weight, len(rows.code)) for each in nodes.refusals]
    # The last entry of each table is for -1: a node without a refusal, whose rows are always counted.
    is_possible = np.array([*(each is not None for each in recorded), False])[nodes.refusal]
    sums = np.array([*(each or 0 for each in recorded), 0], dtype=np.uint64)[nodes.refusal]
    recorded_devices = np.array([*(each.devices for each in nodes.refusals), 0], dtype=np.int64)[nodes.refusal]
    has_counts = np.array([*(not each.bare and not each.uncounted for each in nodes.refusals), True])[nodes.refusal]
    agrees: Flags = is_possible & (found == sums) & (devices == recorded_devices)
    differs: Flags = ~agrees & has_counts
    return differs


def _sums(weights: Sums, rows: Ints) -> Sums:
    """The sum of each run of ``rows`` weights; it wraps around at 2**64."""
    ends = np.cumsum(rows)
    sums: Sums = np.diff(np.append(np.uint64(0), np.cumsum(weights))[np.append(0, ends)])
    return sums


def _weighed(refusal: Refusal, weight: Mapping[str, int], rows: int) -> int | None:
    """The sum of the refusal's counts; None where it counts more rows than there are."""
    # Without this bound a count that is larger by 2**63 would have the same sum at every other weight.
    if any(count > rows for count in refusal.counts.values()):
        return None
    return sum(weight[code] * count for code, count in refusal.counts.items()) % 2**64


def _counted(words: Sequence[str], rows: _Rows, devices: Ints, wrong: Flags) -> dict[int, Refusal]:
    """The refusals of the nodes ``wrong`` as their rows count them."""
    place = np.repeat(rows.place, rows.rows)
    keep = (place >= 0) & (rows.code >= 0) & wrong[place]
    keys, counts = np.unique(place[keep] * max(len(words), 1) + rows.code[keep], return_counts=True)
    found: dict[int, dict[str, int]] = {node: {} for node in np.flatnonzero(wrong).tolist()}
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        node, code = divmod(key, len(words))
        found[node][words[code]] = count
    return {node: Refusal.model_construct(counts=counts, devices=int(devices[node])) for node, counts in found.items()}
