"""Search for the attempt that a report is about, where another source has reported it already.

The rule is in docs/decisions/0023. Every source gives the time of the filter's end, or of the bind, with a clock and a
delay of its own: two reports are about one try if their times can be one time. If several attempts qualify and none of
them is clearly nearer than the others, nothing is decided.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.reports import KUBE_EVENTS
from schemas.events import FILTER_END, AttemptSummarized, PublishedAttempt, PublishedReport, Report, Status

MAX_SKEW: Final = timedelta(milliseconds=250)
"""Largest difference between the clock of a scheduler and that of the events about it."""
SAME_CLOCK: Final = timedelta(milliseconds=10)
"""Largest difference between a scheduler and its log, which have the clock of one process: rounding, and the time to
write a line."""
MAX_DELAY: Final = timedelta(seconds=2)
"""Longest time from an incident to the Kubernetes event about it."""
CLEAR_LEAD: Final = timedelta(milliseconds=500)
"""Lead over every other attempt that makes a match certain."""
_SECOND: Final = timedelta(seconds=1)
_NONE: Final = timedelta(0)


class Match(NamedTuple):
    attempt: PublishedAttempt | None
    """The attempt that the report is about; None for a new attempt, or if the match is not certain."""
    candidates: list[str]
    """Ids of the attempts that the report may be about, if the match is not certain."""


class _Gap(NamedTuple):
    needs_skew: bool
    """True if both times can be one time only if the clocks differ."""
    length: timedelta


class _Tried(NamedTuple):
    """An attempt, reduced to what a report is compared with."""

    pod_uid: str
    status: Status
    chosen: str | None
    is_refused: bool
    reports: Sequence[PublishedReport]


class _Candidate(NamedTuple):
    gap: _Gap
    attempt: PublishedAttempt
    has_same_clock: bool
    """True if both times come from a scheduler's own clock."""


def match(attempts: Sequence[PublishedAttempt], summary: AttemptSummarized) -> Match:
    """Find the attempt of the pod that the only report of ``summary`` is about."""
    (own_report,) = summary.reports
    report = to_published_report(own_report, summary.version)
    candidates = [
        _Candidate(gap, attempt, _is_exact(report) and any(map(_is_exact, attempt.reports)))
        for attempt in attempts
        if _can_match(attempt, summary, report) and (gap := _measure_gap(attempt, report)) is not None
    ]
    # Events are less exact: they can't overrule a time on which a scheduler and its log agree.
    candidates = [candidate for candidate in candidates if candidate.has_same_clock] or candidates
    # An event comes after its cause, so it is not about the next try, which begins soon after it.
    candidates = [candidate for candidate in candidates if not candidate.gap.needs_skew] or candidates
    candidates.sort(key=lambda candidate: candidate.gap)
    if not candidates:
        return Match(None, [])
    if len(candidates) == 1 or candidates[1].gap.length - candidates[0].gap.length >= CLEAR_LEAD:
        return Match(candidates[0].attempt, [])
    return Match(None, [candidate.attempt.attempt_id for candidate in candidates])


def reports_same_try(attempt: AttemptSummarized, report: AttemptSummarized) -> bool:
    """Tell whether the only report of ``report`` is about the attempt."""
    reports = [to_published_report(other, attempt.version) for other in attempt.reports]
    tried = _Tried(attempt.pod.uid, attempt.status, attempt.chosen, is_refused(attempt), reports)
    (own_report,) = report.reports
    published = to_published_report(own_report, report.version)
    return _can_match(tried, report, published) and _measure_gap(tried, published) is not None


def _can_match(attempt: PublishedAttempt | _Tried, summary: AttemptSummarized, report: PublishedReport) -> bool:
    """Tell whether both agree in everything but the time. A fact that one of them leaves open contradicts nothing."""
    if any(published.source == report.source for published in attempt.reports):
        return False
    if not may_be_one_pod(attempt.pod_uid, summary.pod.uid):
        return False
    if attempt.chosen and summary.chosen:
        bound = {None: None, "succeeded": True, "failed": False}
        attempt_bound, report_bound = bound.get(attempt.status), _is_bound(summary, report)
        return attempt.chosen == summary.chosen and (
            attempt_bound is None or report_bound is None or attempt_bound == report_bound
        )
    return not (attempt.chosen and is_refused(summary)) and not (summary.chosen and attempt.is_refused)


def _is_bound(summary: AttemptSummarized, report: PublishedReport) -> bool | None:
    """Tell whether the report says that the pod was bound; None if it says neither."""
    if summary.bind:
        return summary.bind.bound
    return True if report.knows_only_bind else None


def may_be_one_pod(uid: str, other: str) -> bool:
    """Tell whether pods of one name with these UIDs can be one pod. A source without a UID leaves it open."""
    return not uid or not other or uid == other


def is_refused(summary: AttemptSummarized) -> bool:
    """Tell whether the filter ended without a node, after nodes were judged."""
    return summary.ended_at is not None and summary.chosen is None and not summary.error


def _measure_gap(attempt: PublishedAttempt | _Tried, report: PublishedReport) -> _Gap | None:
    """Measure the time between both reports; None if it is too long for one try."""
    others = attempt.reports
    if report.knows_only_bind:
        bound = [other for other in others if other.bind_ended_at]
        times = [_derive_bind_end(other) for other in bound] or [_derive_filter_end(other) for other in others]
        gaps = [_compare_times(time, _derive_bind_end(report)) for time in times]
    else:
        gaps = list(_measure_filter_gaps(report, others))
    possible = [gap for gap in gaps if gap is not None]
    return max(possible) if len(possible) == len(gaps) else None


def _measure_filter_gaps(report: PublishedReport, others: Sequence[PublishedReport]) -> Iterator[_Gap | None]:
    # A pod may be bound long after the filter, so a report of the bind says little about the filter's end.
    ended = [other for other in others if not other.knows_only_bind]
    for other in ended or others:
        if ended:
            yield _compare_times(_derive_filter_end(other), _derive_filter_end(report))
        else:
            yield _compare_times(
                _derive_bind_end(other),
                _derive_bind_end(report) if report.bind_ended_at else _derive_filter_end(report),
            )


class _Time(NamedTuple):
    """Range in which something happened, and how much later the source may have noted it."""

    earliest: datetime
    latest: datetime
    delay: timedelta
    skew: timedelta


def _compare_times(former: _Time, other: _Time) -> _Gap | None:
    """Measure the gap between two times that can be one time; None if they can't."""
    first, second = sorted((former, other), key=lambda time: time.earliest)
    length = max(second.earliest - first.latest, _NONE)
    skew = max(first.skew, second.skew)
    return _Gap(length > second.delay, length) if length <= second.delay + skew else None


def _is_exact(report: PublishedReport) -> bool:
    return report.source != KUBE_EVENTS


def _derive_filter_end(report: PublishedReport) -> _Time:
    """Derive the range in which the filter ended."""
    if report.source == KUBE_EVENTS:
        times = (report.started_at, report.ended_at or report.started_at)
        return _derive_incident_time(min(times), max(times))
    return _Time(report.started_at, report.ended_at or report.bind_ended_at or report.started_at, _NONE, SAME_CLOCK)


def _derive_bind_end(report: PublishedReport) -> _Time:
    """Derive the range in which the bind ended."""
    time = report.bind_ended_at or report.ended_at or report.started_at
    return _derive_incident_time(time, time) if report.source == KUBE_EVENTS else _Time(time, time, _NONE, SAME_CLOCK)


def _derive_incident_time(first: datetime, last: datetime) -> _Time:
    """Derive the range of what happened before events with these times. Some clients write complete seconds, rounded
    down."""
    return _Time(first, last if last.microsecond else last + _SECOND, MAX_DELAY, MAX_SKEW)


def to_published_report(report: Report, version: int, repeats: str = "") -> PublishedReport:
    """Reduce the report to what further reports are compared with; ``repeats`` as in ``PublishedReport``."""
    is_open = report.ended_at is None or FILTER_END in report.not_reported
    return PublishedReport.model_construct(
        source=report.source,
        attempt_id=report.attempt_id,
        version=version,
        started_at=report.started_at,
        ended_at=report.ended_at,
        bind_ended_at=report.bind_ended_at,
        repeats=repeats,
        knows_only_bind=report.source == KUBE_EVENTS and is_open,
    )
