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


def recount(nodes: NodeColumns, records: Sequence[DevicesJudged]) -> dict[int, Refusal]:
    """Where the device rows count otherwise than the node records say: the node's position and the rows' own refusal.

    Nodes whose devices are not all reported, nodes refused without counts and containers that did not refuse are
    left out.
    """
    records = [record for record in records if not record.partial]
    if not records or not nodes.nodes:
        return {}
    places = _explained(nodes, records)
    place = np.concatenate(places)
    explains = place >= 0
    known = np.zeros(len(nodes.nodes), dtype=np.bool_)
    devices = np.zeros(len(nodes.nodes), dtype=np.int64)
    known[place[explains]] = True
    devices[place[explains]] = np.concatenate([record.devices for record in records])[explains]
    codes = _codes(nodes.refusals, records)
    weight = dict(zip(codes, np.frombuffer(token_bytes(8 * len(codes)), np.uint64).tolist(), strict=True))
    found = np.zeros(len(nodes.nodes), dtype=np.uint64)
    # ``add.at``: a node whose rows are spread over two records has two sums.
    np.add.at(found, place[explains], np.concatenate([_sums(record, weight) for record in records])[explains])
    rows = sum(len(record.verdict) for record in records)
    wrong = known & _differ(nodes, found, devices, [_weighed(refusal, weight, rows) for refusal in nodes.refusals])
    return _counted(records, places, devices, wrong) if wrong.any() else {}


def _explained(nodes: NodeColumns, records: Sequence[DevicesJudged]) -> list[Ints]:
    """Per record and node of it, which of ``nodes`` its rows explain; -1 for none."""
    # HAMi evaluates containers in order and stops at the first that fails: its rows alone explain the refusal.
    return [
        np.where((record.rows > 0) & (nodes.refused_by[place] == record.container), place, -1)
        for record, place in zip(records, _places(nodes.nodes, records), strict=True)
    ]


def _places(known: Sequence[str], records: Sequence[DevicesJudged]) -> list[Ints]:
    """Per record and node of it, where the node stands among ``known``; -1 for what is not there."""
    places: dict[str, int] = {}
    columns = []
    container, place = -1, 0
    for record in records:
        # A scheduler judges the nodes in the order of its node records, container by container: comparing a run of
        # names costs a tenth of looking each of them up.
        place = place if record.container == container else 0
        stop = place + len(record.nodes)
        if known[place:stop] == record.nodes:
            columns.append(np.arange(place, stop))
        else:
            # Reversed: of a name that occurs twice, the first place counts.
            places = places or {known[place]: place for place in range(len(known) - 1, -1, -1)}
            columns.append(np.array([places.get(name, -1) for name in record.nodes], dtype=np.int64))
        container, place = record.container, int(columns[-1][-1]) + 1 if len(columns[-1]) else place
    return columns


def _codes(refusals: Sequence[Refusal], records: Sequence[DevicesJudged]) -> set[str]:
    """Every code that a row or a refusal may have."""
    return {word for record in records for word in record.verdicts}.union(*(refusal.counts for refusal in refusals))


def _sums(record: DevicesJudged, weight: Mapping[str, int]) -> Sums:
    """Per node of the record, the weights of its rows added up; they wrap around at 2**64."""
    weights = np.array([0 if word in NOT_REASONS else weight[word] for word in record.verdicts], dtype=np.uint64)
    sums = np.zeros(len(record.rows), dtype=np.uint64)
    # ``reduceat`` gives a run without rows the first weight of the next one.
    has_rows = record.rows > 0
    starts = (np.cumsum(record.rows) - record.rows)[has_rows]
    if len(starts):
        sums[has_rows] = np.add.reduceat(weights[record.verdict], starts)
    return sums


def _weighed(refusal: Refusal, weight: Mapping[str, int], rows: int) -> int | None:
    """The sum of the refusal's counts; None where it counts more rows than there are."""
    # Without this bound a count that is larger by 2**63 would have the same sum at every other weight.
    if any(count > rows for count in refusal.counts.values()):
        return None
    return sum(weight[code] * count for code, count in refusal.counts.items()) % 2**64


def _differ(nodes: NodeColumns, found: Sums, devices: Ints, recorded: Sequence[int | None]) -> Flags:
    """Per node: do its rows differ from the counts of its refusal? ``recorded`` has the sum of each refusal."""
    # The last entry of each table is for -1: a node without a refusal, whose rows are always counted.
    is_possible = np.array([*(total is not None for total in recorded), False])[nodes.refusal]
    sums = np.array([*(total or 0 for total in recorded), 0], dtype=np.uint64)[nodes.refusal]
    recorded_devices = np.array([*(refusal.devices for refusal in nodes.refusals), 0], dtype=np.int64)[nodes.refusal]
    has_counts = np.array([*(not refusal.bare and not refusal.uncounted for refusal in nodes.refusals), True])[
        nodes.refusal
    ]
    agrees: Flags = is_possible & (found == sums) & (devices == recorded_devices)
    differs: Flags = ~agrees & has_counts
    return differs


def _counted(
    records: Sequence[DevicesJudged], places: Sequence[Ints], devices: Ints, wrong: Flags
) -> dict[int, Refusal]:
    """The refusals of the nodes ``wrong`` as their rows count them."""
    found: dict[int, dict[str, int]] = {node: {} for node in np.flatnonzero(wrong).tolist()}
    for record, place in zip(records, places, strict=True):
        is_reason = np.array([word not in NOT_REASONS for word in record.verdicts], dtype=np.bool_)
        owner = np.repeat(np.where((place >= 0) & wrong[place], place, -1), record.rows)
        keep = (owner >= 0) & is_reason[record.verdict]
        # One integer for each pair of node and verdict, so that numpy counts them in one pass.
        words = max(len(record.verdicts), 1)
        keys, counts = np.unique(owner[keep] * words + record.verdict[keep], return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            node, code = divmod(key, words)
            word = record.verdicts[code]
            found[node][word] = found[node].get(word, 0) + count
    return {
        node: Refusal.model_construct(counts=counts, devices=int(devices[node]), uncounted=[])
        for node, counts in found.items()
    }
