"""Merging of two summaries of one report: a late bind or record added to what was published before.

Summaries of two reports of one attempt: ``engine.summaries.reports``.

A version grows only with the facts in a summary, so of two summaries the one with more facts has the greater version,
whichever process wrote it and in whatever order both arrive in a store.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.codec.code_tables import merge_refusal_tables, merge_tables
from schemas.codec.records import encode_value
from schemas.events import FITS, PICKED, AttemptSummarized, BindConcluded, BindOutcome, Report, Status
from schemas.ids import count_microseconds

Ints = npt.NDArray[np.int64]
Fields = dict[str, object]

_BIND_WEIGHT: Final = 1_000_000
_REPORT_WEIGHT: Final = 2 * _BIND_WEIGHT


def derive_version(summary: AttemptSummarized) -> int:
    """Derive the version: microseconds of the latest event's time, plus one for every fact, plus a second for the bind,
    plus two seconds for each further report.

    Nodes, devices, the end and completeness count as one each. So a summary with more facts has a greater version also
    if two events carry the same time. A bind outweighs any number of nodes: a filter result that arrives after its bind
    never silently replaces it, but meets a version conflict. A further report outweighs both: it may replace more than
    it adds.
    """
    # Stores keep the greater version (OpenSearch's ``external_gte`` refuses a smaller one), so a summary with more
    # facts must have it.
    entries = len(summary.nodes) + summary.judged_devices + len(summary.picked_devices)
    facts = (summary.ended_at is not None) + summary.complete
    bind = _BIND_WEIGHT if summary.bind else 0
    # Bounded below a second, or the counts would outweigh the bind.
    further = 0
    if len(summary.reports) > 1:
        # A report of a poorer source counts only for its presence, whatever it says.
        facts += sum((report.ended_at is not None) + (report.bind_ended_at is not None) for report in summary.reports)
        further = _REPORT_WEIGHT * (len(summary.reports) - 1)
    return count_microseconds(_find_latest_time(summary)) + min(entries + facts, _BIND_WEIGHT - 1) + bind + further


def _find_latest_time(summary: AttemptSummarized) -> datetime:
    times = [summary.started_at, summary.ended_at, summary.bind and summary.bind.ended_at]
    # Times that a better source has replaced count too: a version never becomes smaller.
    for report in summary.reports:
        times += [report.started_at, report.ended_at, report.bind_ended_at]
    return max(time for time in times if time)


def derive_status(summary: AttemptSummarized) -> Status:
    """Derive the status as the API explains it: the bind decides, else whether the filter chose a node."""
    if summary.bind:
        return "succeeded" if summary.bind.bound else "failed"
    concluded = summary.ended_at is not None
    return "failed" if concluded and (summary.chosen is None or summary.error) else "pending"


def settle(summary: AttemptSummarized) -> AttemptSummarized:
    """Return the summary with the status and the version that follow from its other fields."""
    return summary.model_copy(update={"status": derive_status(summary), "version": derive_version(summary)})


def with_bind(summary: AttemptSummarized, bind: BindConcluded) -> AttemptSummarized:
    """Add the result of the bind; a summary with a later bind is returned as it is."""
    outcome = BindOutcome(
        node=bind.node, bound=bind.bound, error=bind.error, lock_holder=bind.lock_holder, ended_at=bind.ended_at
    )
    latest = choose_later_bind(summary.bind, outcome)
    if latest == summary.bind:
        return summary
    # If the filter's end is unknown, the bind is the only evidence of its choice; it never replaces a reported choice.
    chosen = summary.chosen if summary.ended_at else bind.node
    reports = with_bind_time(summary.reports, latest)
    return settle(summary.model_copy(update={"bind": latest, "chosen": chosen, "reports": reports}))


def with_bind_time(reports: Sequence[Report], bind: BindOutcome | None) -> list[Report]:
    """Return the reports of one source with the time of its bind."""
    ended_at = bind.ended_at if bind else None
    return [report.model_copy(update={"bind_ended_at": ended_at}) for report in reports]


def choose_later_bind(bind_before: BindOutcome | None, other: BindOutcome | None) -> BindOutcome | None:
    # For two binds in one microsecond any rule will do that does not depend on the order of arrival.
    return max((bind for bind in (bind_before, other) if bind), key=_rank_bind, default=None)


def _rank_bind(bind: BindOutcome) -> tuple[datetime, bool, str, str]:
    return bind.ended_at, bind.bound, bind.node, bind.error


def merge_summaries(summary: AttemptSummarized, other: AttemptSummarized) -> AttemptSummarized:
    """Merge two full summaries of one report; the order does not matter.

    Nodes that only one of them has are taken from that one. If both have a node, and for all other fields, the summary
    with more facts wins.
    """
    poorer, fuller = _sort_by_fullness(summary, other)
    bind = choose_later_bind(poorer.bind, fuller.bind)
    if fuller.complete or not set(poorer.nodes) - set(fuller.nodes):
        merged = fuller
    else:
        merged = fuller.model_copy(update=_merge_nodes(fuller, poorer))
    devices = fuller.judged_devices if fuller.ended_at else max(poorer.judged_devices, fuller.judged_devices)
    chosen = fuller.chosen or (bind.node if bind and not fuller.ended_at else None)
    reports = with_bind_time(merged.reports, bind)
    return settle(
        merged.model_copy(update={"bind": bind, "judged_devices": devices, "chosen": chosen, "reports": reports})
    )


def _sort_by_fullness(
    summary: AttemptSummarized, other: AttemptSummarized
) -> tuple[AttemptSummarized, AttemptSummarized]:
    """Sort the less complete summary first. Two that are equally complete are ordered by their bytes, so that the
    result does not depend on which came first."""
    ranks = _rank_fullness(summary), _rank_fullness(other)
    if ranks[0] == ranks[1]:
        ranks = (*ranks[0], encode_value(summary)), (*ranks[1], encode_value(other))
    return (summary, other) if ranks[0] <= ranks[1] else (other, summary)


def _rank_fullness(summary: AttemptSummarized) -> tuple[object, ...]:
    # The bind is merged separately: one that came early must not make a poor filter result look full.
    filtered = summary.model_copy(update={"bind": None})
    return summary.complete, summary.ended_at is not None, derive_version(filtered)


def _merge_nodes(fuller: AttemptSummarized, poorer: AttemptSummarized) -> Fields:
    """Merge the node columns of both, sorted by name; ``poorer`` adds nothing about nodes that ``fuller`` has."""
    # The fuller one wins per node, not per column: a verdict and its refusal must come from the same summary.
    fuller_nodes = set(fuller.nodes)
    extra = [row for row, name in enumerate(poorer.nodes) if name not in fuller_nodes]
    names = [*fuller.nodes, *(poorer.nodes[row] for row in extra)]
    order = sorted(range(len(names)), key=names.__getitem__)
    verdicts, verdict = merge_tables((fuller.verdicts, poorer.verdicts), (fuller.verdict, poorer.verdict[extra]))
    refusals, refusal = merge_refusal_tables(
        (fuller.refusals, poorer.refusals), (fuller.refusal, poorer.refusal[extra])
    )
    return {
        "nodes": [names[row] for row in order],
        "verdicts": verdicts,
        "verdict": verdict[order],
        "score": np.concatenate([fuller.score, poorer.score[extra]])[order],
        "refused_by": np.concatenate([fuller.refused_by, poorer.refused_by[extra]])[order],
        "refusals": refusals,
        "refusal": refusal[order],
        "score_terms": {
            name: np.concatenate([terms, _get_terms(poorer, name)[extra]])[order]
            for name, terms in fuller.score_terms.items()
        },
        "requests": [*fuller.requests, *poorer.requests[len(fuller.requests) :]],
        "picked_devices": fuller.picked_devices or poorer.picked_devices,
        "picked": fuller.picked or poorer.picked,
        "fit_nodes": count_fitting(count_verdicts(verdicts, verdict)),
        "offered_nodes": max(fuller.offered_nodes, len(names)),
    }


def _get_terms(summary: AttemptSummarized, name: str) -> npt.NDArray[np.float32]:
    return summary.score_terms.get(name, np.zeros(len(summary.nodes), dtype=np.float32))


def count_verdicts(verdicts: Sequence[str], verdict: Ints) -> dict[str, int]:
    """Count the nodes of each verdict, sorted by verdict; ``verdict`` points into ``verdicts``."""
    counts = np.bincount(verdict, minlength=len(verdicts)).tolist()
    return {word: count for word, count in sorted(zip(verdicts, counts, strict=True)) if count}


def count_fitting(by_verdict: Mapping[str, int]) -> int:
    """Count the nodes that fit."""
    return sum(by_verdict.get(word, 0) for word in (PICKED, FITS))
