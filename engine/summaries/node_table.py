"""The node records of an attempt as one table, checked against the device rows and sorted by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import lt
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.summaries.merge import words_counted
from engine.summaries.recount import NodeColumns, recount
from engine.summaries.text import refusal_text
from schemas.codec.code_tables import one_refusal_table, one_table
from schemas.events import DevicesJudged, NodesJudged, Refusal

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NodeTable:
    """The columns of a summary that have an entry per node, sorted by name."""

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
    """In words: where device rows and node records count differently."""

    def columns(self) -> dict[str, Any]:
        names = ("nodes", "verdicts", "verdict", "score", "refused_by", "refusals", "refusal", "score_terms")
        return {name: getattr(self, name) for name in names}


def node_table(records: Sequence[NodesJudged], devices: Sequence[DevicesJudged]) -> NodeTable:
    """All nodes of the records in order; where there are device rows, the counts are theirs."""
    return _RecordedNodes(records).recounted(devices)


class _RecordedNodes:
    """The nodes of an attempt as its node records describe them, before device rows are counted."""

    def __init__(self, records: Sequence[NodesJudged]) -> None:
        self._names = list(chain.from_iterable(record.nodes for record in records))
        self._order = _by_name(self._names)
        nodes = self._names if self._order is None else [self._names[row] for row in self._order.tolist()]
        verdicts, verdict = one_table([record.verdicts for record in records], [record.verdict for record in records])
        refusals, refusal = one_refusal_table(
            [record.refusals for record in records], [record.refusal for record in records]
        )
        refused_by = _joined(records, "refused_by", np.int64)
        self.columns = NodeColumns(self._names, refused_by, refusal, refusals)
        in_order = self._sorted(verdict)
        self.table = NodeTable(
            nodes=nodes,
            verdicts=verdicts,
            verdict=in_order,
            by_verdict=words_counted(verdicts, in_order),
            score=self._sorted(_joined(records, "score", np.float32)),
            refused_by=self._sorted(refused_by),
            refusals=refusals,
            refusal=self._sorted(refusal),
            score_terms={name: self._sorted(_term(records, name)) for name in _terms(records)},
            disagreements=(),
        )

    def recounted(self, devices: Sequence[DevicesJudged]) -> NodeTable:
        """The table with the device rows' own counts where they differ; as a rule they don't, and it is the same."""
        counted = recount(self.columns, devices)
        if not counted:
            return self.table
        refusals, refusal = _replaced(self.columns, counted)
        disagreements = _first_disagreement(self._names, self.columns, counted)
        return replace(self.table, refusals=refusals, refusal=self._sorted(refusal), disagreements=disagreements)

    def _sorted(self, column: Any) -> Any:
        """By node name."""
        return column if self._order is None else column[self._order]


def _joined(records: Sequence[NodesJudged], name: str, kind: type[np.generic]) -> Any:
    return np.concatenate([np.empty(0, dtype=kind), *(getattr(record, name) for record in records)])


def _terms(records: Sequence[NodesJudged]) -> list[str]:
    return sorted({name for record in records for name in record.score_terms})


def _term(records: Sequence[NodesJudged], name: str) -> Any:
    """One term of the score; 0 for the nodes of a record without it."""
    parts = (record.score_terms.get(name, np.zeros(len(record.nodes), dtype=np.float32)) for record in records)
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _by_name(names: Sequence[str]) -> Ints | None:
    """Row numbers sorted by node name; of a node that occurs twice, the first row. None where that is every row."""
    # Records of a scheduler with sorted node names need no sorting; ``lt`` in C also shows that no name occurs twice.
    if all(map(lt, names, islice(names, 1, None))):
        return None
    order = sorted(range(len(names)), key=names.__getitem__)
    if len(set(names)) < len(names):
        order = [row for place, row in enumerate(order) if not place or names[order[place - 1]] != names[row]]
    return np.array(order)


def _first_disagreement(names: Sequence[str], recorded: NodeColumns, counted: Mapping[int, Refusal]) -> list[str]:
    """The first node whose record and device rows differ; a record without counts can't disagree."""
    rows = [row for row in counted if recorded.refusal[row] >= 0]
    if not rows:
        return []
    # By name and not by position, so that the sentence does not depend on the order of records.
    row = min(rows, key=names.__getitem__)
    node_says = refusal_text(recorded.refusals[recorded.refusal[row]])
    device_rows = refusal_text(counted[row])
    more = f", and {len(rows) - 1} more nodes" if len(rows) > 1 else ""
    return [f"{names[row]}: the device rows count '{device_rows}', its record says '{node_says}'{more}"]


def _replaced(recorded: NodeColumns, counted: Mapping[int, Refusal]) -> tuple[list[Refusal], Ints]:
    """The refusals, each distinct one once, with the rows' own counts where they differ."""
    refusal = recorded.refusal.copy()
    # New codes behind the table of the records; ``one_refusal_table`` makes each distinct refusal one again.
    refusal[list(counted)] = len(recorded.refusals) + np.arange(len(counted))
    refusals = [*recorded.refusals, *counted.values()]
    used, codes = np.unique(refusal, return_inverse=True)
    none = int(used[0] < 0)
    return one_refusal_table([[refusals[code] for code in used[none:].tolist()]], [codes.astype(np.int64) - none])
