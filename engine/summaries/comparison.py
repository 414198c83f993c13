"""Why a node was chosen, and how two nodes or two attempts differ."""

from typing import Final

import orjson

from engine.summaries.answer import choose, plain, schedulerlog_json
from schemas.answers.comparisons import NodeChange, NodeJudged, RunnerUp, ScoreTerm
from schemas.events import FITS, NOT_REACHED, PICKED, AttemptSummarized

HAMI_WEIGHT: Final = 10
"""A HAMi node's score is ten times the used shares of slots, cores and memory (node_policy.go)."""
_HAMI_TERMS: Final = frozenset(("slots", "cores", "memory"))
_FIT: Final = (PICKED, FITS)


def judged_nodes(summary: AttemptSummarized) -> dict[str, NodeJudged]:
    """Node to how it was judged, by name; without nodes that were not reached."""
    logs = orjson.loads(schedulerlog_json(summary, choose(summary)))["filter"]["nodes"]
    containers = {log["name"]: log["containers"] for log in logs}
    found = {}
    for row, node in enumerate(summary.nodes):
        verdict = summary.verdicts[summary.verdict[row]]
        if verdict == NOT_REACHED:
            continue
        fits = verdict in _FIT
        found[node] = NodeJudged(
            node=node,
            verdict=verdict,
            score=plain(summary.score[row]) if fits else 0,
            terms=_terms(summary, row) if fits else [],
            containers=containers[node],
        )
    return dict(sorted(found.items()))


def _terms(summary: AttemptSummarized, row: int) -> list[ScoreTerm]:
    is_hami = summary.score_terms.keys() >= _HAMI_TERMS
    return [
        ScoreTerm(
            name=name,
            weighted=plain(column[row]),
            raw=round(plain(column[row]) / HAMI_WEIGHT, 9) if is_hami and name in _HAMI_TERMS else None,
        )
        for name, column in summary.score_terms.items()
    ]


def fitting_nodes(summary: AttemptSummarized) -> list[NodeJudged]:
    """Every node that fitted: the chosen one, then the best by the attempt's policy, equal ones by name."""
    nodes = [node for node in judged_nodes(summary).values() if node.verdict in _FIT]
    sign = 1 if summary.node_policy == "spread" else -1
    return sorted(nodes, key=lambda node: (node.node != summary.chosen, sign * node.score, node.node))


def runner_up(summary: AttemptSummarized, fitting: list[NodeJudged]) -> RunnerUp | None:
    """The best of ``fitting`` that the pod did not get, and by how much; None where there is none."""
    if len(fitting) < 2 or fitting[0].node != summary.chosen:
        return None
    chosen, best = fitting[:2]
    more = difference(best, chosen)
    return RunnerUp(node=best.node, score=best.score, behind=abs(more.pop("score")), terms=more)


def difference(one: NodeJudged, other: NodeJudged) -> dict[str, float]:
    """By how much score and terms of ``one`` exceed those of ``other``; empty unless both fit."""
    if one.verdict not in _FIT or other.verdict not in _FIT:
        return {}
    of_other = {term.name: term.weighted for term in other.terms}
    terms = {term.name: round(term.weighted - of_other.get(term.name, 0), 4) for term in one.terms}
    return {"score": round(one.score - other.score, 4)} | terms


def changed_nodes(before: AttemptSummarized, after: AttemptSummarized) -> tuple[list[NodeChange], int]:
    """The nodes that both attempts judged differently, by name, and the number of the others."""
    first, second = judged_nodes(before), judged_nodes(after)
    names = sorted(first.keys() | second.keys())
    changes = [NodeChange(before=first.get(name), after=second.get(name)) for name in names]
    differing = [change for change in changes if change.before != change.after]
    return differing, len(names) - len(differing)


def changed_fields(before: AttemptSummarized, after: AttemptSummarized) -> dict[str, list[str]]:
    """What else differs: field to its value before and after."""
    both = zip(_fields(before).items(), _fields(after).values(), strict=True)
    return {name: [old, new] for (name, old), new in both if old != new}


def _fields(summary: AttemptSummarized) -> dict[str, str]:
    return {
        "status": summary.status,
        "chosen": summary.chosen or "",
        "requests": " ".join(request.model_dump_json() for request in summary.requests),
        "node_policy": summary.node_policy,
        "device_policy": summary.device_policy,
        "settings_digest": summary.settings_digest,
    }
