"""A pod's attempt beside those that were published before it. Pure.

Which attempt a report belongs to, whether it was published already, which attempt came before, and what the history is
afterwards.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from engine.summaries.matching import is_one_pod, published_report
from engine.summaries.pod_descriptions import merged_description
from pipeline.worker.open_attempts import ClosedAttempt
from schemas.events import (
    AttemptSummarized,
    PodDescription,
    PodHistoryChanged,
    PodRef,
    PublishedAttempt,
    PublishedReport,
)
from schemas.events.pod_histories import KEPT_ATTEMPTS, KEPT_SECONDS, MAX_ATTEMPTS


def known_attempt(history: PodHistoryChanged | None, report_id: str) -> PublishedAttempt | None:
    """The attempt that has a report of this id; None for a report that is new, or of an older attempt than the history
    has."""
    attempts = history.attempts if history else []
    return next((attempt for attempt in attempts if published_version(attempt, report_id) is not None), None)


def published_version(attempt: PublishedAttempt, report_id: str) -> int | None:
    """What was published of that report of the attempt; None where nothing was."""
    return next((report.version for report in attempt.reports if report.attempt_id == report_id), None)


def was_published(history: PodHistoryChanged, closed: ClosedAttempt) -> bool:
    """Was the report published before a crash, after which its records are read again?"""
    summary = closed.summary
    if closed.has_expired:
        # Time may complete an attempt at another record than before: only its version says what was known of it.
        known = known_attempt(history, summary.attempt_id)
        return known is not None and summary.version <= (published_version(known, summary.attempt_id) or 0)
    # By the time too: where the topic of decisions was deleted and made again, its offsets begin at 0.
    return closed.offsets[-1] <= history.published_until and summary.started_at <= _latest_start(history)


def _latest_start(history: PodHistoryChanged) -> datetime:
    """The latest start in any report: an attempt has the start of the report that was published first."""
    return max(report.started_at for attempt in history.attempts for report in attempt.reports)


def attempt_before(history: PodHistoryChanged | None, summary: AttemptSummarized) -> PublishedAttempt | None:
    """The pod's attempt that began before this one, which may be new or published already; None where none is known."""
    before = (
        attempt
        for attempt in (history.attempts if history else [])
        if attempt.started_at < summary.started_at and is_one_pod(attempt.pod_uid, summary.pod.uid)
    )
    return next(before, None)


class PodPast(NamedTuple):
    """What the published attempts of a pod, with the one in question, say of it together."""

    first_judged_at: datetime
    """When the first known attempt began."""
    attempts: int
    """How many were published."""
    description: PodDescription | None
    """Where the pod comes from, as any of them has it."""


def past_of(history: PodHistoryChanged | None, summary: AttemptSummarized) -> PodPast:
    """What the history and the attempt say of the attempt's pod."""
    uid = summary.pod.uid
    own = [attempt for attempt in (history.attempts if history else []) if is_one_pod(attempt.pod_uid, uid)]
    known = next((attempt.attempts for attempt in own if attempt.attempt_id == summary.attempt_id), 0)
    described = history.description if history and is_one_pod(history.pod.uid, uid) else None
    return PodPast(
        min([summary.started_at, *(attempt.first_judged_at for attempt in own)]),
        # Also where an earlier attempt is reported last: it is one more.
        known or 1 + max((attempt.attempts for attempt in own), default=0),
        merged_description(described, summary.description),
    )


def published_reports(
    known: PublishedAttempt | None, summary: AttemptSummarized, own: AttemptSummarized
) -> list[PublishedReport]:
    """Those of ``summary``, the attempt when its report ``own`` is published."""
    versions = {report.attempt_id: report.version for report in known.reports} if known else {}
    versions[own.attempt_id] = max(versions.get(own.attempt_id, 0), own.version)
    # A summary that only the memory had has reports of which the history knows nothing.
    return [published_report(report, versions.get(report.attempt_id, 0)) for report in summary.reports]


def with_published(
    history: PodHistoryChanged | None, summary: AttemptSummarized, attempt: PublishedAttempt, closed: ClosedAttempt
) -> PodHistoryChanged:
    """The history when ``attempt``, of that summary, is published."""
    others = history.attempts if history else []
    attempts = [attempt, *(other for other in others if other.attempt_id != attempt.attempt_id)]
    # A stable order: of two that began together the one that was published last is the later one.
    attempts.sort(key=lambda entry: entry.started_at, reverse=True)
    until = closed.offsets[-1] if not closed.has_expired else history.published_until if history else -1
    pod = summary.pod
    # Of the latest attempt's pod: an earlier one of the name has another description.
    is_of_latest = is_one_pod(attempts[0].pod_uid, pod.uid)
    description = past_of(history, summary).description if is_of_latest or not history else history.description
    return PodHistoryChanged.model_construct(
        cluster=summary.cluster,
        pod=PodRef.model_construct(namespace=pod.namespace, name=pod.name, uid=attempts[0].pod_uid),
        scheduler=summary.scheduler,
        published_until=until,
        attempts=attempts[: _kept(attempts)],
        description=description,
    )


def _kept(attempts: Sequence[PublishedAttempt]) -> int:
    """How many of them further reports may be about; the latest is the first."""
    since = attempts[0].started_at - timedelta(seconds=KEPT_SECONDS)
    recent = sum(attempt.started_at >= since for attempt in attempts)
    return min(max(recent, KEPT_ATTEMPTS), MAX_ATTEMPTS)
