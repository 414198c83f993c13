"""Which attempt a report is about, where another source has reported it already.

The rule is in docs/decisions/0023. Every source says when the filter ended, or when the pod was bound, with a clock and
a delay of its own: two reports are about one try if what they say can be one time. Where several attempts can be meant
and none of them is clearly nearer than the others, nothing is decided.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.reports import KUBE_EVENTS
from schemas.events import FILTER_END, AttemptSummarized, PublishedAttempt, PublishedReport, Report

MAX_SKEW: Final = timedelta(milliseconds=250)
"""Between the clock of a scheduler and that of the events about it."""
SAME_CLOCK: Final = timedelta(milliseconds=10)
"""Between a scheduler and its log, which have the clock of one process: only rounding, and the time to write a line."""
MAX_DELAY: Final = timedelta(seconds=2)
"""From what happened to the event of Kubernetes about it."""
CLEARLY: Final = timedelta(milliseconds=500)
"""So much nearer than any other is the attempt that is meant."""
_SECOND: Final = timedelta(seconds=1)
_NONE: Final = timedelta(0)


class Match(NamedTuple):
    attempt: PublishedAttempt | None
    """The attempt that the report is about; None for a new one, or where it is not certain."""
    may_be: list[str]
    """Ids of the attempts that it may be about, where it is not certain."""


class _Gap(NamedTuple):
    needs_skew: bool
    """Can it be one time only if the clocks differ?"""
    length: timedelta


class _Candidate(NamedTuple):
    gap: _Gap
    attempt: PublishedAttempt
    has_same_clock: bool
    """Is the time of both that of a scheduler itself?"""


def match(attempts: Sequence[PublishedAttempt], summary: AttemptSummarized) -> Match:
    """The attempt of the pod that the only report of ``summary`` is about."""
    (only,) = summary.reports
    report = published_report(only, summary.version)
    found = [
        _Candidate(gap, attempt, _is_exact(report) and any(map(_is_exact, attempt.reports)))
        for attempt in attempts
        if _can_be(attempt, summary, report) and (gap := _gap_to(attempt, report)) is not None
    ]
    # Events say less of the time: where a scheduler and its log agree on it, they can't take that back.
    found = [candidate for candidate in found if candidate.has_same_clock] or found
    # An event comes after what it is about: the next try, which begins soon after it, is not meant.
    found = [candidate for candidate in found if not candidate.gap.needs_skew] or found
    found.sort(key=lambda candidate: candidate.gap)
    if not found:
        return Match(None, [])
    if len(found) == 1 or found[1].gap.length - found[0].gap.length >= CLEARLY:
        return Match(found[0].attempt, [])
    return Match(None, [candidate.attempt.attempt_id for candidate in found])


def _can_be(attempt: PublishedAttempt, summary: AttemptSummarized, report: PublishedReport) -> bool:
    """Do both agree in everything but the time? What one of them leaves open contradicts nothing."""
    if any(known.source == report.source for known in attempt.reports):
        return False
    if not is_one_pod(attempt.pod_uid, summary.pod.uid):
        return False
    if attempt.chosen and summary.chosen:
        bound = {None: None, "succeeded": True, "failed": False}
        one, other = bound.get(attempt.status), _is_bound(summary, report)
        return attempt.chosen == summary.chosen and (one is None or other is None or one == other)
    return not (attempt.chosen and is_refused(summary)) and not (summary.chosen and attempt.is_refused)


def _is_bound(summary: AttemptSummarized, report: PublishedReport) -> bool | None:
    """None where the report does not say it."""
    if summary.bind:
        return summary.bind.bound
    return True if report.knows_only_bind else None


def is_one_pod(uid: str, other: str) -> bool:
    """Can pods of one name with these UIDs be one pod? A source that names no UID leaves it open."""
    return not uid or not other or uid == other


def is_refused(summary: AttemptSummarized) -> bool:
    """Did the filter end without a node, after nodes were judged?"""
    return summary.ended_at is not None and summary.chosen is None and not summary.error


def _gap_to(attempt: PublishedAttempt, report: PublishedReport) -> _Gap | None:
    """The time between what both say; None where it is too long for one try."""
    others = attempt.reports
    if report.knows_only_bind:
        bound = [other for other in others if other.bind_ended_at]
        times = [_bound(other) for other in bound] or [_ended(other) for other in others]
        gaps = [_gap(time, _bound(report)) for time in times]
    else:
        gaps = list(_gaps_of_filter(report, others))
    known = [gap for gap in gaps if gap is not None]
    return max(known) if len(known) == len(gaps) else None


def _gaps_of_filter(report: PublishedReport, others: Sequence[PublishedReport]) -> Iterator[_Gap | None]:
    # A pod may be bound long after the filter: such a report says little of its end, if another one does.
    ended = [other for other in others if not other.knows_only_bind]
    for other in ended or others:
        if ended:
            yield _gap(_ended(other), _ended(report))
        else:
            yield _gap(_bound(other), _bound(report) if report.bind_ended_at else _ended(report))


class _Time(NamedTuple):
    """Between which times it was, and how much later the source may have noted it."""

    earliest: datetime
    latest: datetime
    delay: timedelta
    skew: timedelta


def _gap(one: _Time, other: _Time) -> _Gap | None:
    """Between two that can be one time; None for those that can't."""
    first, second = sorted((one, other), key=lambda time: time.earliest)
    length = max(second.earliest - first.latest, _NONE)
    skew = max(first.skew, second.skew)
    return _Gap(length > second.delay, length) if length <= second.delay + skew else None


def _is_exact(report: PublishedReport) -> bool:
    return report.source != KUBE_EVENTS


def _ended(report: PublishedReport) -> _Time:
    """When the filter ended."""
    if report.source == KUBE_EVENTS:
        times = (report.started_at, report.ended_at or report.started_at)
        return _noted(min(times), max(times))
    return _Time(report.started_at, report.ended_at or report.bind_ended_at or report.started_at, _NONE, SAME_CLOCK)


def _bound(report: PublishedReport) -> _Time:
    """When the bind ended."""
    at = report.bind_ended_at or report.ended_at or report.started_at
    return _noted(at, at) if report.source == KUBE_EVENTS else _Time(at, at, _NONE, SAME_CLOCK)


def _noted(first: datetime, last: datetime) -> _Time:
    """What happened before events with these times. Some clients write whole seconds, rounded down."""
    return _Time(first, last if last.microsecond else last + _SECOND, MAX_DELAY, MAX_SKEW)


def published_report(report: Report, version: int) -> PublishedReport:
    """The report, reduced to what further ones are compared with."""
    is_open = report.ended_at is None or FILTER_END in report.not_reported
    return PublishedReport.model_construct(
        source=report.source,
        attempt_id=report.attempt_id,
        version=version,
        started_at=report.started_at,
        ended_at=report.ended_at,
        bind_ended_at=report.bind_ended_at,
        knows_only_bind=report.source == KUBE_EVENTS and is_open,
    )
