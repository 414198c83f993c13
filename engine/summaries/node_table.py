"""Node records of an attempt as one table, checked against the device rows and sorted by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import lt
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.summaries.device_counts import NodeColumns, recount
from engine.summaries.merge import count_verdicts
from engine.summaries.text import write_refusal
from schemas.codec.code_tables import merge_refusal_tables, merge_tables
from schemas.events import DevicesJudged, NodesJudged, Refusal

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NodeTable:
    """Columns of a summary with an entry per node, sorted by name."""

    nodes: Sequence[str]
    verdicts: Sequence[str]
    verdict: Ints
    score: npt.NDArray[np.float32]
    refused_by: Ints
    refusals: Sequence[Refusal]
    refusal: Ints
    score_terms: dict[str, npt.NDArray[np.float32]]
    by_verdict: dict[str, int]
    """Verdict to number of nodes."""
    disagreements: Sequence[str]
    """Sentences about device rows and node records that count differently."""

    def to_columns(self) -> dict[str, Any]:
        names = ("nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal", "score_terms")
        return {name: getattr(self, name) for name in names}


def build_node_table(records: Sequence[NodesJudged], devices: Sequence[DevicesJudged]) -> NodeTable:
    """Build the table of all nodes in the records; where there are device rows, their counts replace the records'."""
    return _RecordedNodes(records).with_recount(devices)


class _RecordedNodes:
    """Nodes of an attempt as its node records describe them, before device rows are counted."""

    def __init__(self, records: Sequence[NodesJudged]) -> None:
        self._names = list(chain.from_iterable(record.nodes for record in records))
        self._order = _sort_by_name(self._names)
        nodes = self._names if self._order is None else [self._names[row] for row in self._order.tolist()]
        verdicts, verdict = merge_tables(
            [record.verdicts for record in records], [record.verdict for record in records]
        )
        refusals, refusal = merge_refusal_tables(
            [record.refusals for record in records], [record.refusal for record in records]
        )
        refused_by = _join_column(records, "refused_by", np.int64)
        self.columns = NodeColumns(self._names, refused_by, refusal, refusals)
        in_order = self._sort(verdict)
        self.table = NodeTable(
            nodes=nodes,
            verdicts=verdicts,
            verdict=in_order,
            by_verdict=count_verdicts(verdicts, in_order),
            score=self._sort(_join_column(records, "score", np.float32)),
            refused_by=self._sort(refused_by),
            refusals=refusals,
            refusal=self._sort(refusal),
            score_terms={name: self._sort(_join_term(records, name)) for name in _list_terms(records)},
            disagreements=(),
        )

    def with_recount(self, devices: Sequence[DevicesJudged]) -> NodeTable:
        """Return the table with the device rows' counts where they differ; as a rule they don't, and it is the same
        table."""
        counted = recount(self.columns, devices)
        if not counted:
            return self.table
        refusals, refusal = _replace_refusals(self.columns, counted)
        disagreements = _describe_first_disagreement(self._names, self.columns, counted)
        return replace(self.table, refusals=refusals, refusal=self._sort(refusal), disagreements=disagreements)

    def _sort(self, column: Any) -> Any:
        """Sort a column by node name."""
        return column if self._order is None else column[self._order]


def _join_column(records: Sequence[NodesJudged], name: str, kind: type[np.generic]) -> Any:
    columns = [getattr(record, name) for record in records]
    return columns[0] if len(columns) == 1 else np.concatenate([np.empty(0, dtype=kind), *columns])


def _list_terms(records: Sequence[NodesJudged]) -> list[str]:
    return sorted({name for record in records for name in record.score_terms})


def _join_term(records: Sequence[NodesJudged], name: str) -> Any:
    """Join one term of the score; 0 for the nodes of a record without it."""
    parts = (record.score_terms.get(name, np.zeros(len(record.nodes), dtype=np.float32)) for record in records)
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _sort_by_name(names: Sequence[str]) -> Ints | None:
    """Return the row numbers sorted by node name, the first row of a name that occurs twice; None if every row is in
    order."""
    # Records of a scheduler with sorted node names need no sorting; ``lt`` in C also shows that no name occurs twice.
    if all(map(lt, names, islice(names, 1, None))):
        return None
    order = sorted(range(len(names)), key=names.__getitem__)
    if len(set(names)) < len(names):
        order = [row for index, row in enumerate(order) if not index or names[order[index - 1]] != names[row]]
    return np.array(order)


def _describe_first_disagreement(
    names: Sequence[str], recorded: NodeColumns, counted: Mapping[int, Refusal]
) -> list[str]:
    """Describe the first node whose record and device rows differ; a record without counts can't disagree."""
    rows = [row for row in counted if recorded.refusal[row] >= 0]
    if not rows:
        return []
    # The first by name, not by position, so that the sentence does not depend on the order of records.
    row = min(rows, key=names.__getitem__)
    node_says = write_refusal(recorded.refusals[recorded.refusal[row]])
    device_rows = write_refusal(counted[row])
    more = f", and {len(rows) - 1} more nodes" if len(rows) > 1 else ""
    return [f"{names[row]}: the device rows count '{device_rows}', its record says '{node_says}'{more}"]


def _replace_refusals(recorded: NodeColumns, counted: Mapping[int, Refusal]) -> tuple[list[Refusal], Ints]:
    """Return the distinct refusals and their codes, with the device rows' counts where they differ."""
    refusal = recorded.refusal.copy()
    # New codes follow the table of the records; ``merge_refusal_tables`` merges equal refusals again.
    refusal[list(counted)] = len(recorded.refusals) + np.arange(len(counted))
    refusals = [*recorded.refusals, *counted.values()]
    used, codes = np.unique(refusal, return_inverse=True)
    none = int(used[0] < 0)
    return merge_refusal_tables([[refusals[code] for code in used[none:].tolist()]], [codes.astype(np.int64) - none])
