"""Two summaries of one report as one: a late bind or a late record added to what was published before.

Those of two reports of one attempt: ``engine.summaries.reports``.

A version grows with what is known and with nothing else, so of two summaries the one that knows more has the greater
version, whichever process wrote it and in whatever order they arrive in a store.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.codec.code_tables import one_refusal_table, one_table
from schemas.codec.records import encode_value
from schemas.events import FITS, PICKED, AttemptSummarized, BindConcluded, BindOutcome, Report, Status
from schemas.ids import microseconds

Ints = npt.NDArray[np.int64]
Fields = dict[str, object]

_BIND_WEIGHT: Final = 1_000_000
_REPORT_WEIGHT: Final = 2 * _BIND_WEIGHT


def version_of(summary: AttemptSummarized) -> int:
    """Microseconds of the latest event's time, plus one for everything that is known, plus a second for the bind, plus
    two for each further report.

    Nodes, devices, the end and completeness count as one each. So a summary that knows more has a greater version also
    where two events carry the same time. A bind outweighs any number of nodes: a filter result that arrives after its
    bind never silently replaces it, but meets a version conflict. A further report outweighs both: what it says may
    replace more than it adds.
    """
    # Stores keep the greater version (OpenSearch's ``external_gte`` refuses a smaller one), so more knowledge must give
    # one.
    known = len(summary.nodes) + summary.judged_devices + len(summary.picked_devices)
    facts = (summary.ended_at is not None) + summary.complete
    bind = _BIND_WEIGHT if summary.bind else 0
    # Bounded below a second, or the counts would outweigh the bind.
    further = 0
    if len(summary.reports) > 1:
        # What a poorer source says later may add no more than that it says it.
        facts += sum((report.ended_at is not None) + (report.bind_ended_at is not None) for report in summary.reports)
        further = _REPORT_WEIGHT * (len(summary.reports) - 1)
    return microseconds(_latest(summary)) + min(known + facts, _BIND_WEIGHT - 1) + bind + further


def _latest(summary: AttemptSummarized) -> datetime:
    times = [summary.started_at, summary.ended_at, summary.bind and summary.bind.ended_at]
    # Also times that a better source's have replaced: a version never becomes smaller.
    for report in summary.reports:
        times += [report.started_at, report.ended_at, report.bind_ended_at]
    return max(time for time in times if time)


def status_of(summary: AttemptSummarized) -> Status:
    """As the API explains it: the bind decides, else whether the filter chose a node."""
    if summary.bind:
        return "succeeded" if summary.bind.bound else "failed"
    concluded = summary.ended_at is not None
    return "failed" if concluded and (summary.chosen is None or summary.error) else "pending"


def settled(summary: AttemptSummarized) -> AttemptSummarized:
    """The summary with the status and the version that follow from the rest of it."""
    return summary.model_copy(update={"status": status_of(summary), "version": version_of(summary)})


def with_bind(summary: AttemptSummarized, bind: BindConcluded) -> AttemptSummarized:
    """The summary with the result of the bind added; the same summary when it has a later bind already."""
    outcome = BindOutcome(
        node=bind.node, bound=bind.bound, error=bind.error, lock_holder=bind.lock_holder, ended_at=bind.ended_at
    )
    known = later(summary.bind, outcome)
    if known == summary.bind:
        return summary
    # Where the filter's end is unknown, the bind is the only evidence of its choice; it never replaces a known one.
    chosen = summary.chosen if summary.ended_at else bind.node
    reports = bound_at(summary.reports, known)
    return settled(summary.model_copy(update={"bind": known, "chosen": chosen, "reports": reports}))


def bound_at(reports: Sequence[Report], bind: BindOutcome | None) -> list[Report]:
    """The reports of one source with the time of its bind."""
    ended_at = bind.ended_at if bind else None
    return [report.model_copy(update={"bind_ended_at": ended_at}) for report in reports]


def later(one: BindOutcome | None, other: BindOutcome | None) -> BindOutcome | None:
    # Two binds in one microsecond: any rule will do that does not depend on who comes first.
    return max((bind for bind in (one, other) if bind), key=_bind_order, default=None)


def _bind_order(bind: BindOutcome) -> tuple[datetime, bool, str, str]:
    return bind.ended_at, bind.bound, bind.node, bind.error


def merged(one: AttemptSummarized, other: AttemptSummarized) -> AttemptSummarized:
    """The union of two whole summaries of one report; the order does not matter.

    Nodes that only one of them has are taken from that one. Where both have a node, and for all other fields, the
    summary that knows more wins.
    """
    poorer, fuller = _by_fullness(one, other)
    bind = later(poorer.bind, fuller.bind)
    if fuller.complete or not set(poorer.nodes) - set(fuller.nodes):
        whole = fuller
    else:
        whole = fuller.model_copy(update=_all_nodes(fuller, poorer))
    devices = fuller.judged_devices if fuller.ended_at else max(poorer.judged_devices, fuller.judged_devices)
    chosen = fuller.chosen or (bind.node if bind and not fuller.ended_at else None)
    reports = bound_at(whole.reports, bind)
    return settled(
        whole.model_copy(update={"bind": bind, "judged_devices": devices, "chosen": chosen, "reports": reports})
    )


def _by_fullness(one: AttemptSummarized, other: AttemptSummarized) -> tuple[AttemptSummarized, AttemptSummarized]:
    """The less complete one first. Two that know as much are ordered by their bytes, so that the result does not depend
    on who came first."""
    known = _fullness(one), _fullness(other)
    if known[0] == known[1]:
        known = (*known[0], encode_value(one)), (*known[1], encode_value(other))
    return (one, other) if known[0] <= known[1] else (other, one)


def _fullness(summary: AttemptSummarized) -> tuple[object, ...]:
    # The bind is merged by itself: one that came early must not make a poor filter result look full.
    filtered = summary.model_copy(update={"bind": None})
    return summary.complete, summary.ended_at is not None, version_of(filtered)


def _all_nodes(fuller: AttemptSummarized, poorer: AttemptSummarized) -> Fields:
    """The node columns of both, sorted by name; nothing of ``poorer`` about nodes that ``fuller`` knows."""
    # The fuller one wins per node, not per column: a verdict and its refusal must come from the same summary.
    known = set(fuller.nodes)
    extra = [row for row, name in enumerate(poorer.nodes) if name not in known]
    names = [*fuller.nodes, *(poorer.nodes[row] for row in extra)]
    order = sorted(range(len(names)), key=names.__getitem__)
    verdicts, verdict = one_table((fuller.verdicts, poorer.verdicts), (fuller.verdict, poorer.verdict[extra]))
    refusals, refusal = one_refusal_table((fuller.refusals, poorer.refusals), (fuller.refusal, poorer.refusal[extra]))
    return {
        "nodes": [names[row] for row in order],
        "verdicts": verdicts,
        "verdict": verdict[order],
        "score": np.concatenate([fuller.score, poorer.score[extra]])[order],
        "refused_by": np.concatenate([fuller.refused_by, poorer.refused_by[extra]])[order],
        "refusals": refusals,
        "refusal": refusal[order],
        "score_terms": {
            name: np.concatenate([terms, _terms_of(poorer, name)[extra]])[order]
            for name, terms in fuller.score_terms.items()
        },
        "requests": [*fuller.requests, *poorer.requests[len(fuller.requests) :]],
        "picked_devices": fuller.picked_devices or poorer.picked_devices,
        "picked": fuller.picked or poorer.picked,
        "fit_nodes": fitting(words_counted(verdicts, verdict)),
        "offered_nodes": max(fuller.offered_nodes, len(names)),
    }


def _terms_of(summary: AttemptSummarized, name: str) -> npt.NDArray[np.float32]:
    return summary.score_terms.get(name, np.zeros(len(summary.nodes), dtype=np.float32))


def words_counted(verdicts: Sequence[str], verdict: Ints) -> dict[str, int]:
    """Verdict to number of nodes, sorted by verdict; ``verdict`` points into ``verdicts``."""
    counts = np.bincount(verdict, minlength=len(verdicts)).tolist()
    return {word: count for word, count in sorted(zip(verdicts, counts, strict=True)) if count}


def fitting(by_verdict: Mapping[str, int]) -> int:
    """How many of the nodes fit."""
    return sum(by_verdict.get(word, 0) for word in (PICKED, FITS))
