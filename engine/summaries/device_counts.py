"""Counts of device rows by verdict and model, and their comparison with the node records, in numpy.

For the comparison every code has a random weight, and the weights of a node's rows are added up instead of counting the
rows code by code. If the sum equals that of the counts in the node's record, the counts are equal; only the other nodes
are counted. Unequal counts have equal sums in less than one of 2**40 attempts, and nobody can prepare such a record,
because the weights are drawn for each attempt. No array here is larger than the rows and tables that came, whatever a
record claims.
"""

from collections.abc import Iterable, Mapping, Sequence
from secrets import token_bytes
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.events import NOT_REASONS, DevicesJudged, Refusal

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Sums = npt.NDArray[np.uint64]


class NodeColumns(NamedTuple):
    """Columns of the node records, with an entry per node."""

    nodes: Sequence[str]
    refused_by: Ints
    refusal: Ints
    """Index into ``refusals``; -1 for none."""
    refusals: Sequence[Refusal]


def recount(nodes: NodeColumns, records: Sequence[DevicesJudged]) -> dict[int, Refusal]:
    """Map the position of each node whose device rows and record count differently to the refusal of its rows.

    Nodes without reports of all devices, nodes refused without counts and containers that did not refuse are left out.
    """
    records = [record for record in records if not record.partial]
    if not records or not nodes.nodes:
        return {}
    positions = _locate_explained(nodes, records)
    position = np.concatenate(positions)
    explains = position >= 0
    has_rows = np.zeros(len(nodes.nodes), dtype=np.bool_)
    devices = np.zeros(len(nodes.nodes), dtype=np.int64)
    has_rows[position[explains]] = True
    devices[position[explains]] = np.concatenate([record.devices for record in records])[explains]
    codes = _collect_codes(nodes.refusals, records)
    weight = dict(zip(codes, np.frombuffer(token_bytes(8 * len(codes)), np.uint64).tolist(), strict=True))
    row_sums = np.zeros(len(nodes.nodes), dtype=np.uint64)
    # ``add.at``: a node whose rows are spread over two records has two sums.
    np.add.at(
        row_sums, position[explains], np.concatenate([_sum_weights(record, weight) for record in records])[explains]
    )
    rows = sum(len(record.verdict) for record in records)
    wrong = has_rows & _flag_differing(
        nodes, row_sums, devices, [_weigh_refusal(refusal, weight, rows) for refusal in nodes.refusals]
    )
    return _count_refusals(records, positions, devices, wrong) if wrong.any() else {}


def _locate_explained(nodes: NodeColumns, records: Sequence[DevicesJudged]) -> list[Ints]:
    """Return, per record and node of it, the position of the node that its rows explain; -1 for none."""
    # HAMi evaluates containers in order and stops at the first that fails: only its rows explain the refusal.
    return [
        np.where((record.rows > 0) & (nodes.refused_by[position] == record.container), position, -1)
        for record, position in zip(records, _locate_nodes(nodes.nodes, records), strict=True)
    ]


def _locate_nodes(names: Sequence[str], records: Sequence[DevicesJudged]) -> list[Ints]:
    """Return, per record and node of it, the node's position in ``names``; -1 if it is not there."""
    name_positions: dict[str, int] = {}
    columns = []
    container, start = -1, 0
    for record in records:
        # A scheduler judges the nodes in the order of its node records, container by container: comparing a run of
        # names costs a tenth of looking each of them up.
        start = start if record.container == container else 0
        stop = start + len(record.nodes)
        if names[start:stop] == record.nodes:
            columns.append(np.arange(start, stop))
        else:
            # Reversed, so that the first position of a name that occurs twice stays.
            name_positions = name_positions or {names[start]: start for start in range(len(names) - 1, -1, -1)}
            columns.append(np.array([name_positions.get(name, -1) for name in record.nodes], dtype=np.int64))
        container, start = record.container, int(columns[-1][-1]) + 1 if len(columns[-1]) else start
    return columns


def _collect_codes(refusals: Sequence[Refusal], records: Sequence[DevicesJudged]) -> set[str]:
    """Collect every code that a row or a refusal may have."""
    return {word for record in records for word in record.verdicts}.union(*(refusal.counts for refusal in refusals))


def _sum_weights(record: DevicesJudged, weight: Mapping[str, int]) -> Sums:
    """Sum the weights of the rows per node of the record, modulo 2**64."""
    weights = np.array([0 if word in NOT_REASONS else weight[word] for word in record.verdicts], dtype=np.uint64)
    sums = np.zeros(len(record.rows), dtype=np.uint64)
    # ``reduceat`` gives a run without rows the first weight of the next one.
    has_rows = record.rows > 0
    starts = (np.cumsum(record.rows) - record.rows)[has_rows]
    if len(starts):
        sums[has_rows] = np.add.reduceat(weights[record.verdict], starts)
    return sums


def _weigh_refusal(refusal: Refusal, weight: Mapping[str, int], rows: int) -> int | None:
    """Sum the weights of the refusal's counts; None if it counts more rows than exist."""
    # Without this bound a count that is larger by 2**63 would have the same sum at every other weight.
    if any(count > rows for count in refusal.counts.values()):
        return None
    return sum(weight[code] * count for code, count in refusal.counts.items()) % 2**64


def _flag_differing(nodes: NodeColumns, row_sums: Sums, devices: Ints, recorded: Sequence[int | None]) -> Flags:
    """Compute a flag per node: its rows differ from the counts of its refusal. ``recorded`` has the sum of each
    refusal."""
    # The last entry of each table is for -1: a node without a refusal, whose rows are always counted.
    is_possible = np.array([*(total is not None for total in recorded), False])[nodes.refusal]
    sums = np.array([*(total or 0 for total in recorded), 0], dtype=np.uint64)[nodes.refusal]
    recorded_devices = np.array([*(refusal.devices for refusal in nodes.refusals), 0], dtype=np.int64)[nodes.refusal]
    has_counts = np.array([*(not refusal.bare and not refusal.uncounted for refusal in nodes.refusals), True])[
        nodes.refusal
    ]
    agrees: Flags = is_possible & (row_sums == sums) & (devices == recorded_devices)
    differs: Flags = ~agrees & has_counts
    return differs


def _count_refusals(
    records: Sequence[DevicesJudged], positions: Sequence[Ints], devices: Ints, wrong: Flags
) -> dict[int, Refusal]:
    """Count the rows of the ``wrong`` nodes into refusals."""
    counts_by_node: dict[int, dict[str, int]] = {node: {} for node in np.flatnonzero(wrong).tolist()}
    for record, position in zip(records, positions, strict=True):
        is_reason = np.array([word not in NOT_REASONS for word in record.verdicts], dtype=np.bool_)
        owner = np.repeat(np.where((position >= 0) & wrong[position], position, -1), record.rows)
        keep = (owner >= 0) & is_reason[record.verdict]
        # One integer for each pair of node and verdict, so that numpy counts them in one pass.
        words = max(len(record.verdicts), 1)
        keys, counts = np.unique(owner[keep] * words + record.verdict[keep], return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            node, code = divmod(key, words)
            word = record.verdicts[code]
            counts_by_node[node][word] = counts_by_node[node].get(word, 0) + count
    return {
        node: Refusal.model_construct(counts=counts, devices=int(devices[node]), uncounted=[])
        for node, counts in counts_by_node.items()
    }


def count_rows(records: Iterable[DevicesJudged]) -> int:
    """Count the rows of the records."""
    return sum(len(record.verdict) for record in records)


def count_by_model(records: Iterable[DevicesJudged]) -> dict[str, int]:
    """Count the rows of each device model; rows without a model's name are left out."""
    counts: dict[str, int] = {}
    for record in records:
        for model, count in record.models.items():
            counts[model] = counts.get(model, 0) + count
    return {model: count for model, count in sorted(counts.items()) if model and count}


def count_by_verdict(records: Iterable[DevicesJudged]) -> list[dict[str, int]]:
    """Count the rows of each verdict, per container."""
    counts: list[dict[str, int]] = []
    for record in records:
        counts += [{} for _ in range(record.container + 1 - len(counts))]
        container_counts = counts[record.container]
        for word, count in zip(record.verdicts, np.bincount(record.verdict, minlength=1).tolist(), strict=False):
            if count:  # a table may hold words that no row has, and a word twice
                container_counts[word] = container_counts.get(word, 0) + count
    return [dict(sorted(tally.items())) for tally in counts]
