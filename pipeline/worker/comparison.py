"""A pod's attempt beside those that were published before it. Pure.

Which attempt came before, whether this one was published already, and what the history is afterwards.
"""

from pipeline.worker.open_attempts import ClosedAttempt
from schemas.events import AttemptSummarized, PodHistoryChanged, PublishedAttempt


def known_attempt(history: PodHistoryChanged, attempt_id: str) -> PublishedAttempt | None:
    """The attempt as it was published; None for one that is new, or older than the latest two."""
    both = (history.latest, history.previous)
    return next((each for each in both if each is not None and each.attempt_id == attempt_id), None)


def was_published(history: PodHistoryChanged, closed: ClosedAttempt) -> bool:
    """Was the attempt published before a crash, after which its records are read again?"""
    summary = closed.summary
    if closed.has_expired:
        # Time may complete an attempt at another record than before: only its version says what was known of it.
        known = known_attempt(history, summary.attempt_id)
        return known is not None and summary.version <= known.version
    # By the time too: where the topic of decisions was deleted and made again, its offsets begin at 0.
    return closed.offsets[-1] <= history.published_until and summary.started_at <= history.latest.started_at


def attempt_before(history: PodHistoryChanged | None, summary: AttemptSummarized) -> PublishedAttempt | None:
    """The attempt that began before this one, which may be new or published already; None where none is known."""
    both = (history.latest, history.previous) if history else ()
    before = (each for each in both if each is not None and each.started_at < summary.started_at)
    return next(before, None)


def with_published(
    history: PodHistoryChanged | None, summary: AttemptSummarized, attempt: PublishedAttempt, closed: ClosedAttempt
) -> PodHistoryChanged:
    """The history when ``attempt``, of that summary, is published."""
    others = (history.latest, history.previous) if history else ()
    attempts = [attempt, *(each for each in others if each is not None and each.attempt_id != attempt.attempt_id)]
    # A stable order: of two that began together the one that was published last is the later one.
    latest, *rest = sorted(attempts, key=lambda each: each.started_at, reverse=True)
    until = closed.offsets[-1] if not closed.has_expired else history.published_until if history else -1
    return PodHistoryChanged.model_construct(
        cluster=summary.cluster,
        pod=summary.pod,
        scheduler=summary.scheduler,
        published_until=until,
        latest=latest,
        previous=rest[0] if rest else None,
    )
