"""Whole summaries as they were published: from memory, else from the topic of attempts."""

import logging
from typing import Any, Final

from engine.summaries.retries import own_texts
from pipeline.worker.attempt_records import size_of
from pipeline.worker.pod_histories import ReadableTopics
from runtime.bounded_cache import BoundedCache
from runtime.telemetry.logs import about
from schemas.codec.chunking import join
from schemas.codec.records import decode
from schemas.events import AttemptSummarized, PublishedAttempt, PublishedReport, Report, SummaryLocation
from schemas.topics import ATTEMPTS

logger = logging.getLogger(__name__)

WITHOUT_COMPARISON: Final[dict[str, Any]] = {
    "episode": "", "episode_started_at": None, "changes": [], "first_judged_at": None,
    "attempts": 0, "wait": None,
}  # fmt: skip
"""The fields of a summary that the worker adds when it publishes it, as they are before."""


class PublishedSummaries:
    """Keeps the summaries that were published last, at most ``max_bytes`` of them."""

    def __init__(self, topics: ReadableTopics, max_bytes: int) -> None:
        self._topics = topics
        self._cache: BoundedCache[str, AttemptSummarized] = BoundedCache(max_bytes=max_bytes, size_of=size_of)

    def __len__(self) -> int:
        return len(self._cache)

    def cached(self, attempt_id: str) -> AttemptSummarized | None:
        return self._cache.get(attempt_id)

    def put(self, summary: AttemptSummarized) -> None:
        self._cache.put(summary.attempt_id, summary)

    def clear(self) -> None:
        self._cache.clear()

    async def of(self, attempt: PublishedAttempt) -> AttemptSummarized | None:
        """The summary of an attempt, as far as it was published; None where the topic no longer has it."""
        whole = await self.at(attempt.whole)
        if whole is None or whole.attempt_id == attempt.attempt_id:
            return whole
        own = ("attempt_id", "started_at", "version", "status", "ended_at")
        reports = [_report(report, whole) for report in attempt.reports]
        fields = {name: getattr(attempt, name) for name in own} | own_texts(attempt)
        return whole.model_copy(update=fields | {"reports": reports})

    async def at(self, location: SummaryLocation) -> AttemptSummarized | None:
        """The summary that lies there; None where the topic no longer has it."""
        if (cached := self._cache.get(location.attempt_id)) is not None:
            return cached
        records = await self._topics.at(ATTEMPTS.name, location.partition, location.offsets)
        parts = [decode(record.value, record.headers) for record in records]
        mine = [
            part for part in parts if isinstance(part, AttemptSummarized) and part.attempt_id == location.attempt_id
        ]
        try:
            whole = join(mine)
        except ValueError as error:
            # Past its retention, or the topic was deleted and made again.
            logger.warning(
                "attempt %s is not on its topic any more: %s", location.attempt_id, error,
                extra=about(attempt=location.attempt_id),
            )  # fmt: skip
            return None
        # What the worker itself added when it published the summary.
        return whole.model_copy(update=WITHOUT_COMPARISON)


def _report(known: PublishedReport, whole: AttemptSummarized) -> Report:
    """A repetition's own, with what the source's report says that it repeats."""
    like = next((report for report in whole.reports if report.source == known.source), None)
    own = ("source", "attempt_id", "started_at", "ended_at", "bind_ended_at")
    fields = {name: getattr(known, name) for name in own}
    return like.model_copy(update=fields) if like else Report(**fields)
