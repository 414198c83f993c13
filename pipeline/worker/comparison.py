"""A pod's attempt compared with the attempts that were published before it. Pure.

Which attempt a report belongs to, whether it was published already, which attempt came before, and what the history is
afterwards.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.matching import may_be_one_pod, to_published_report
from engine.summaries.pod_facts import merge_descriptions
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

_READ_AGAIN: Final = ("kube-events",)
"""Sources whose reader has no position in what it reads, and reads it in order."""


def find_attempt(history: PodHistoryChanged | None, report_id: str) -> PublishedAttempt | None:
    """Find the attempt that has a report of this id; None for a new report, and for one of an attempt that the history
    no longer holds."""
    attempts = history.attempts if history else []
    return next((attempt for attempt in attempts if find_version(attempt, report_id) is not None), None)


def find_version(attempt: PublishedAttempt, report_id: str) -> int | None:
    """Find the published version of a report; None if it was not published."""
    return next((report.version for report in attempt.reports if report.attempt_id == report_id), None)


def was_published(history: PodHistoryChanged, closed: ClosedAttempt) -> bool:
    """Tell whether the report was published before a crash, after which its records are read again."""
    summary = closed.summary
    if closed.has_expired:
        # Time may complete an attempt at another record than before: only its version says what was known of it.
        attempt = find_attempt(history, summary.attempt_id)
        return attempt is not None and summary.version <= (find_version(attempt, summary.attempt_id) or 0)
    # By the time too: where the topic of decisions was deleted and made again, its offsets begin at 0.
    return closed.offsets[-1] <= history.published_until and summary.started_at <= _find_latest_start(history)


def is_read_again(history: PodHistoryChanged, report: AttemptSummarized) -> bool:
    """Tell whether the report is of an attempt that the history held once.

    A restarted reader of events reads those of an hour again, and without verdicts, because the objects of then are
    gone. It reads a pod's events in the order in which they were written, so a new one follows those in the history.
    """
    source = report.reports[0].source
    oldest = min(attempt.started_at for attempt in history.attempts) if history.attempts else report.started_at
    is_full = len(history.attempts) >= KEPT_ATTEMPTS
    knows_source = any(entry.source == source for attempt in history.attempts for entry in attempt.reports)
    first = min((attempt.first_judged_at for attempt in history.attempts), default=oldest)
    return source in _READ_AGAIN and is_full and knows_source and first <= report.started_at < oldest


def _find_latest_start(history: PodHistoryChanged) -> datetime:
    """Return the latest start in any report: an attempt has the start of the report that was published first."""
    return max(report.started_at for attempt in history.attempts for report in attempt.reports)


class Predecessors(NamedTuple):
    """Attempts of the pod that an attempt is compared with."""

    before: PublishedAttempt | None
    """The latest one that began before it."""
    original: PublishedAttempt | None
    """The one that it may repeat: ``before``, or where its source found it unchanged, the one that this says."""


def find_predecessors(
    history: PodHistoryChanged | None, summary: AttemptSummarized, closed: ClosedAttempt
) -> Predecessors:
    """Find the attempts that the attempt ``summary`` is compared with, of which the report ``closed`` is published."""
    before = find_predecessor(history, summary)
    return Predecessors(before, find_original(history, closed.repeats) if closed.repeats else before)


def find_predecessor(history: PodHistoryChanged | None, summary: AttemptSummarized) -> PublishedAttempt | None:
    """Find the pod's latest attempt that began before this one, which may be new or published already."""
    before = (
        attempt
        for attempt in (history.attempts if history else [])
        if attempt.started_at < summary.started_at and may_be_one_pod(attempt.pod_uid, summary.pod.uid)
    )
    return next(before, None)


def find_original(history: PodHistoryChanged | None, report_id: str) -> PublishedAttempt | None:
    """Find the latest attempt of which a source reported what it reported in full under this id."""
    attempts = history.attempts if history else []
    return next(
        (
            attempt
            for attempt in attempts
            if any(report_id in (report.attempt_id, report.repeats) for report in attempt.reports)
        ),
        None,
    )


class PodPast(NamedTuple):
    """Facts about a pod from all its published attempts and the present one."""

    first_judged_at: datetime
    """Start of the first attempt in the history."""
    attempts: int
    """Number of the pod's attempts up to this one."""
    description: PodDescription | None
    """Owner and origin of the pod, from whichever attempt names them."""


def derive_past(history: PodHistoryChanged | None, summary: AttemptSummarized) -> PodPast:
    """Derive facts about the attempt's pod from its history and the attempt."""
    uid = summary.pod.uid
    pod_attempts = [
        attempt for attempt in (history.attempts if history else []) if may_be_one_pod(attempt.pod_uid, uid)
    ]
    ordinal = next((attempt.attempts for attempt in pod_attempts if attempt.attempt_id == summary.attempt_id), 0)
    described = history.description if history and may_be_one_pod(history.pod.uid, uid) else None
    return PodPast(
        min([summary.started_at, *(attempt.first_judged_at for attempt in pod_attempts)]),
        # Also where an earlier attempt is reported last: it is one more.
        ordinal or 1 + max((attempt.attempts for attempt in pod_attempts), default=0),
        merge_descriptions(described, summary.description),
    )


def list_reports(
    entry: PublishedAttempt | None, summary: AttemptSummarized, closed: ClosedAttempt
) -> list[PublishedReport]:
    """List the reports of an attempt, ``summary``, of which the report ``closed`` is being published."""
    published = closed.summary
    versions = {report.attempt_id: report.version for report in entry.reports} if entry else {}
    versions[published.attempt_id] = max(versions.get(published.attempt_id, 0), published.version)
    repeats = {report.attempt_id: report.repeats for report in entry.reports} if entry else {}
    repeats.setdefault(published.attempt_id, closed.repeats)
    # A summary that only the memory had has reports of which the history knows nothing.
    return [
        to_published_report(report, versions.get(report.attempt_id, 0), repeats.get(report.attempt_id, ""))
        for report in summary.reports
    ]


def with_published(
    history: PodHistoryChanged | None,
    summary: AttemptSummarized,
    attempt: PublishedAttempt,
    closed: ClosedAttempt,
    past: PodPast,
) -> PodHistoryChanged:
    """Return the history with ``attempt``, the entry of that summary and its ``past``, added or replaced."""
    others = history.attempts if history else []
    attempts = [attempt, *(other for other in others if other.attempt_id != attempt.attempt_id)]
    # A stable order: of two that began together the one that was published last is the later one.
    attempts.sort(key=lambda entry: entry.started_at, reverse=True)
    until = closed.offsets[-1] if not closed.has_expired else history.published_until if history else -1
    pod = summary.pod
    # Of the latest attempt's pod: an earlier one of the name has another description.
    is_of_latest = may_be_one_pod(attempts[0].pod_uid, pod.uid)
    description = past.description if is_of_latest or not history else history.description
    return PodHistoryChanged.model_construct(
        cluster=summary.cluster,
        pod=PodRef.model_construct(namespace=pod.namespace, name=pod.name, uid=attempts[0].pod_uid),
        scheduler=summary.scheduler,
        published_until=until,
        attempts=attempts[: _count_remembered(attempts)],
        description=description,
    )


def _count_remembered(attempts: Sequence[PublishedAttempt]) -> int:
    """Count the latest attempts that further reports may belong to; the latest one comes first."""
    since = attempts[0].started_at - timedelta(seconds=KEPT_SECONDS)
    recent = sum(attempt.started_at >= since for attempt in attempts)
    return min(max(recent, KEPT_ATTEMPTS), MAX_ATTEMPTS)
