"""Reasons for the choice of a node, and differences between two nodes or two attempts."""

from typing import Final

import orjson

from engine.summaries.answer import encode_schedulerlog, select_nodes, shorten_float
from schemas.answers.comparisons import NodeChange, NodeJudged, PodScores, RunnerUp, ScoreTerm
from schemas.events import FITS, NOT_REACHED, PICKED, AttemptSummarized

HAMI_WEIGHT: Final = 10
"""A HAMi node's score is ten times the used shares of slots, cores and memory (node_policy.go)."""
_HAMI_TERMS: Final = frozenset(("slots", "cores", "memory"))
_FIT: Final = (PICKED, FITS)


def map_judged_nodes(summary: AttemptSummarized) -> dict[str, NodeJudged]:
    """Map each judged node to its judgement, sorted by name; nodes that were not reached are left out."""
    logs = orjson.loads(encode_schedulerlog(summary, select_nodes(summary)))["filter"]["nodes"]
    containers = {log["name"]: log["containers"] for log in logs}
    judged = {}
    for row, node in enumerate(summary.nodes):
        verdict = summary.verdicts[summary.verdict[row]]
        if verdict == NOT_REACHED:
            continue
        fits = verdict in _FIT
        judged[node] = NodeJudged(
            node=node,
            verdict=verdict,
            score=shorten_float(summary.score[row]) if fits else 0,
            terms=_list_terms(summary, row) if fits else [],
            containers=containers[node],
        )
    return dict(sorted(judged.items()))


def _list_terms(summary: AttemptSummarized, row: int) -> list[ScoreTerm]:
    is_hami = summary.score_terms.keys() >= _HAMI_TERMS
    return [
        ScoreTerm(
            name=name,
            weighted=shorten_float(column[row]),
            raw=round(shorten_float(column[row]) / HAMI_WEIGHT, 9) if is_hami and name in _HAMI_TERMS else None,
        )
        for name, column in summary.score_terms.items()
    ]


def list_fitting_nodes(summary: AttemptSummarized) -> list[NodeJudged]:
    """List the nodes that fit: the chosen one, then the others from the best to the worst by the attempt's policy,
    equal ones by name."""
    nodes = [node for node in map_judged_nodes(summary).values() if node.verdict in _FIT]
    sign = 1 if summary.node_policy == "spread" else -1
    return sorted(nodes, key=lambda node: (node.node != summary.chosen, sign * node.score, node.node))


def find_runner_up(summary: AttemptSummarized, fitting: list[NodeJudged]) -> RunnerUp | None:
    """Return the best of the ``fitting`` nodes that was not chosen, and its distance; None if there is none."""
    if len(fitting) < 2 or fitting[0].node != summary.chosen:
        return None
    chosen, best = fitting[:2]
    more = subtract_scores(best, chosen)
    return RunnerUp(node=best.node, score=best.score, behind=abs(more.pop("score")), terms=more)


def build_scores(summary: AttemptSummarized, path: str = "") -> PodScores:
    """Build the scores of an attempt as the API gives them. ``path``: that of the attempt."""
    nodes = list_fitting_nodes(summary)
    return PodScores(
        attempt_id=summary.attempt_id,
        attempt=path,
        node_policy=summary.node_policy,
        chosen=summary.chosen,
        runner_up=find_runner_up(summary, nodes),
        nodes=nodes,
    )


def subtract_scores(node: NodeJudged, other: NodeJudged) -> dict[str, float]:
    """Subtract score and terms of ``other`` from those of ``node``; empty unless both fit."""
    if node.verdict not in _FIT or other.verdict not in _FIT:
        return {}
    other_terms = {term.name: term.weighted for term in other.terms}
    terms = {term.name: round(term.weighted - other_terms.get(term.name, 0), 4) for term in node.terms}
    return {"score": round(node.score - other.score, 4)} | terms


def list_changed_nodes(before: AttemptSummarized, after: AttemptSummarized) -> tuple[list[NodeChange], int]:
    """List the nodes that the two attempts judged differently, by name, and count the other nodes."""
    first, second = map_judged_nodes(before), map_judged_nodes(after)
    names = sorted(first.keys() | second.keys())
    changes = [NodeChange(before=first.get(name), after=second.get(name)) for name in names]
    differing = [change for change in changes if change.before != change.after]
    return differing, len(names) - len(differing)


def list_changed_fields(before: AttemptSummarized, after: AttemptSummarized) -> dict[str, list[str]]:
    """Map each field that differs to its value before and after."""
    both = zip(_list_fields(before).items(), _list_fields(after).values(), strict=True)
    return {name: [old, new] for (name, old), new in both if old != new}


def _list_fields(summary: AttemptSummarized) -> dict[str, str]:
    return {
        "status": summary.status,
        "chosen": summary.chosen or "",
        "requests": " ".join(request.model_dump_json() for request in summary.requests),
        "node_policy": summary.node_policy,
        "device_policy": summary.device_policy,
        "settings_digest": summary.settings_digest,
    }
