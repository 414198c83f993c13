"""Verdicts on the offered nodes of a decision, as `NodesJudged` records."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from engine.fit.events.record_columns import Ints, NodeNames, build_code_table, compute_budget, measure_widest
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from schemas import events
from schemas.codec.chunking import divide_refusals
from schemas.codec.code_tables import cut_refusals
from schemas.events import NodesJudged
from schemas.events.columns import measure_widest_character

_FLOAT_BYTES: Final = 17
"""Bytes of a float32 in its shortest text, and a comma."""

_ZERO_BYTES: Final = 4
"""Bytes of `0.0` and a comma."""


def build_node_records(
    common_fields: dict[str, Any], decision: Decision, names: NodeNames, *, is_placed: bool
) -> Iterator[NodesJudged]:
    """Build the records of all offered nodes. is_placed: False turns the verdict "picked" into "fits"."""
    cutter = _NodeCutter(decision, names, is_placed=is_placed)
    containers = [container.name for container in decision.containers]
    once = common_fields | {"containers": containers, "verdicts": cutter.verdicts}
    no_terms: dict[str, Any] = {"score_terms": {name: [] for name in decision.score_terms}}
    budget = compute_budget(dict.fromkeys(NodesJudged.model_fields) | no_terms | once)
    for part, run in enumerate(cutter.cut_runs(budget)):
        yield NodesJudged.model_construct(**once, part=part, **cutter.cut(run))


class _NodeCutter:
    """Cutter of the columns of all offered nodes into runs."""

    def __init__(self, decision: Decision, names: NodeNames, *, is_placed: bool) -> None:
        self._decision = decision
        verdict = decision.node_verdict
        if not is_placed:
            # A copy: the reply and the log lines read the decision's own column.
            verdict = np.where(verdict == verdict_codes.NODE_PICKED, verdict_codes.NODE_FITS, verdict)
        self.verdicts, self._verdict = build_code_table(verdict_codes.NODE_VERDICTS, verdict)
        self._names = names
        # HAMi divides by totals of zero; the contract allows finite scores only.
        self._score = np.nan_to_num(decision.score, nan=0.0)
        self._fits = decision.node_verdict >= verdict_codes.NODE_FITS
        terms = decision.score_terms if self._fits.any() else {}
        self._terms = {name: np.nan_to_num(term, nan=0.0) for name, term in terms.items()}
        self._refusals, self._refusal = _list_refusals(decision)

    def cut_runs(self, max_bytes: int) -> Iterator[slice]:
        """Cut the nodes into runs of at most `max_bytes`; a record holds each distinct refusal once."""
        codes = measure_widest(self._refusal) + sum(
            map(measure_widest_character, (self._verdict, self._decision.refused_by))
        )
        # A run in which no node fits has no scores.
        floats = (1 + len(self._terms)) if self._fits.any() else 0
        numbers = codes + floats * np.where(self._fits, _FLOAT_BYTES, _ZERO_BYTES)
        # 1: the comma behind the name.
        return divide_refusals(self._names.sizes + 1 + numbers, self._refusals, self._refusal, max_bytes)

    def cut(self, run: slice) -> dict[str, Any]:
        """Cut the fields of a record about the nodes in `run`."""
        refusals, refusal = cut_refusals(self._refusals, self._refusal[run])
        return {
            "nodes": self._names.names[run],
            "verdict": self._verdict[run],
            "score": self._score[run],
            # A row of zeros per term for thousands of nodes of which none fits would say nothing.
            "score_terms": {name: term[run] for name, term in self._terms.items()} if self._fits[run].any() else {},
            "refused_by": self._decision.refused_by[run],
            "refusals": refusals,
            "refusal": refusal,
        }


def _list_refusals(decision: Decision) -> tuple[list[events.Refusal], Ints]:
    """List the distinct refusals, and per node the index into them, shape (n,).

    A node with a cause has a refusal of its own.
    """
    table = [
        events.Refusal.model_construct(
            counts=dict(refusal.counts), devices=refusal.devices, bare=refusal.bare, cause="", uncounted=[]
        )
        for refusal in decision.refusals
    ]
    if not decision.node_causes:
        return table, decision.refusal
    column = decision.refusal.copy()
    causes: dict[tuple[str, str], int] = {}
    for node, name in enumerate(decision.node_names):
        cause = decision.node_causes.get(name)
        if cause:
            key = decision.refusals[int(decision.refusal[node])].bare, cause
            column[node] = causes.setdefault(key, len(table) + len(causes))
    table += [events.Refusal(bare=bare, cause=cause) for bare, cause in causes]
    return table, column
