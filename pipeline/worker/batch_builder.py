"""Turns the writes of one round into a batch: looks up what came before, compares, counts.

It caches what the next batches need: summaries that a later record may complete, the previous attempt of each pod, and
the open minutes. What the cache lacks is read back from the index.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from broker.record import Outgoing
from pipeline.dead_letters.codec import Source, dead_letter
from pipeline.node_pools import pools_of
from pipeline.sinks.bulk import Document
from pipeline.sinks.bulk_result import WriteResult
from pipeline.worker.attempt_documents import may_get_more, size_of
from pipeline.worker.batch import Comparison, WriteBatch
from pipeline.worker.metrics import Metrics
from pipeline.worker.minute_counts import MinuteCounts, minute_of
from pipeline.worker.pod_history import PodHistory, Predecessor
from pipeline.worker.stored_attempts import ReadableIndex, StoredAttempts
from pipeline.worker.writes import (
    AttemptWrite,
    EarlyDevices,
    FindingWrite,
    QueuedWrite,
    RejectedRecord,
    WriterPolicy,
)
from process.bounded_cache import BoundedCache
from schemas.documents.attempts import EpisodeRef, MinuteContribution
from schemas.events import AttemptSummarized, MessageEmitted
from summaries.episodes import PreviousAttempt, continues_episode, differences, repeats
from summaries.fold import merged
from summaries.retries import digests_of
from summaries.trends import contribution

logger = logging.getLogger(__name__)


def _summaries(max_bytes: int) -> BoundedCache[str, AttemptSummarized]:
    """A cache of summaries by the id of their attempt."""
    return BoundedCache(max_bytes=max_bytes, size_of=size_of)


class BatchBuilder:
    """Builds the batches of one writer, one after the other."""

    def __init__(self, index: ReadableIndex, metrics: Metrics, policy: WriterPolicy) -> None:
        self._stored = StoredAttempts(index)
        self._metrics = metrics
        self._incomplete = _summaries(policy.summary_cache_bytes)
        self._whole = _summaries(policy.compared_bytes)
        self._pods = PodHistory()
        self._minutes = MinuteCounts(pools_of(policy.node_pools))

    @property
    def cached_summaries(self) -> int:
        """Summaries that a later record may complete."""
        return len(self._incomplete)

    def clear(self) -> None:
        """Drop all caches: partitions have moved, and another worker may write their attempts now."""
        self._incomplete.clear()
        self._whole.clear()
        self._pods.clear()
        self._minutes.clear()

    async def build(self, writes: Sequence[QueuedWrite]) -> WriteBatch:
        """All that follows from these writes, but for the counts of their minutes."""
        batch = WriteBatch()
        attempts = [write for write in writes if isinstance(write, AttemptWrite)]
        # For all attempts of the round together: a search for each would be a round trip for each.
        predecessors = await self._look_up([write.summary for write in attempts])
        keys = [minute_of(write.partition, write.summary.started_at) for write in attempts]
        # Before anything is counted: a minute that began without what the index has would overwrite its rows with less.
        for minute in await self._stored.minutes(self._minutes.unknown(keys)):
            self._minutes.load(minute.key, minute.attempts, minute.rows)
        for write in writes:
            match write:
                case EarlyDevices():
                    batch.device_records.append(write.device_record)
                case RejectedRecord():
                    self._dead_letter(batch, write.source, write.cause, "record")
                case FindingWrite():
                    # Without a version: its source reports it once, and the index keeps the first document of an id.
                    batch.add_finding(write.event, None, write.origin)
                case AttemptWrite():
                    written = batch.summaries.get(write.summary.attempt_id) or await self._written(write.summary)
                    await self._add(batch, written, write, predecessors.get(write.summary.attempt_id))
        self._metrics.batch_attempts.observe(len(batch.summaries))
        return batch

    async def follow_up(self, batch: WriteBatch, result: WriteResult) -> WriteBatch:
        """What is to be written after ``batch`` was: dead letters of refused documents, and merged summaries."""
        more = WriteBatch()
        # As part of the next batch: the record is acknowledged only when its dead letter is on the topic.
        for document, cause in result.refused:
            self._dead_letter_document(more, document, cause)
        for document in result.conflicts:
            if (write := batch.again(document)) is not None:
                # Another worker wrote a newer version, or this one before a restart: write what both know.
                summary = write.summary
                # By id, which sees the last write; a search would see that of the last refresh.
                stored = await self._stored.summary(summary.attempt_id, summary.started_at)
                if stored is not None:
                    await self._add(more, stored, write, None)
        return more

    def take_minutes(self) -> tuple[list[Document], list[Outgoing]]:
        """The counts of the minutes that changed since the last time, for the index and the topic."""
        return self._minutes.take()

    async def _look_up(self, summaries: Sequence[AttemptSummarized]) -> dict[str, Predecessor]:
        """By attempt id, the predecessors that are not cached. Of each pod only those of its first attempt here: the
        others follow from that one."""
        uncached = {summary.attempt_id: summary for summary in summaries if self._pods.before(summary) is None}
        # Reversed, so that the first attempt of each pod is the one that is kept.
        by_pod = {(summary.pod, summary.scheduler): summary for summary in reversed(uncached.values())}
        first = list(by_pod.values())
        new = await self._stored.new_pods(first)
        found = await self._stored.predecessors([summary for summary in first if summary.pod.uid not in new])
        return found | {summary.attempt_id: Predecessor(None) for summary in first if summary.pod.uid in new}

    async def _add(
        self,
        batch: WriteBatch,
        written: AttemptSummarized | None,
        write: AttemptWrite,
        predecessor: Predecessor | None,
    ) -> None:
        """Add the attempt, merged with what is written of it, unless it adds nothing to that."""
        summary = merged(written, write.summary) if written else write.summary
        # The index would take the same version again; leaving it out spares the write and a second record on the topic.
        if written and summary.version <= written.version:
            return
        comparison = await self._compare(summary, predecessor)
        counted = contribution(summary, self._minutes.pool_of)
        on_document = MinuteContribution(write.partition, counted.plain())
        self._count(summary, batch.add_attempt(summary, written, comparison, write, on_document))
        self._minutes.put(write.partition, summary.started_at, counted)
        # An attempt that is complete now must not be found here again in its older version.
        self._incomplete.pop(summary.attempt_id)
        if may_get_more(summary):
            self._incomplete.put(summary.attempt_id, summary)
        self._pods.put(summary, comparison.attempt, comparison.previous)
        # A repetition has no detail of its own: it is compared through the attempt that it refers to.
        if not comparison.is_repetition:
            self._whole.put(summary.attempt_id, summary)

    async def _compare(self, summary: AttemptSummarized, predecessor: Predecessor | None) -> Comparison:
        """The attempt beside the previous one of its pod: does it repeat that one, does it continue its episode?"""
        cached = self._pods.before(summary) or predecessor
        previous = (cached or (await self._stored.predecessors([summary]))[summary.attempt_id]).attempt
        digests = digests_of(summary)
        is_repetition = repeats(previous, summary, digests)
        if previous and continues_episode(previous, summary, digests):
            episode = previous.episode._replace(changes=())
        else:
            changes = await self._changes(previous, summary)
            episode = EpisodeRef(summary.attempt_id, summary.started_at, changes)
        # A repetition refers to the attempt that has the detail, never to another repetition.
        has_detail = (summary.attempt_id, summary.started_at)
        if previous and is_repetition:
            has_detail = (previous.whole, previous.whole_started)
        attempt = PreviousAttempt(
            summary.attempt_id, summary.scheduler, summary.pod.uid, summary.started_at, summary.status,
            digests, episode, *has_detail,
        )  # fmt: skip
        return Comparison(attempt, previous, is_repetition)

    async def _changes(self, previous: PreviousAttempt | None, summary: AttemptSummarized) -> Sequence[str]:
        if previous is None:
            return ()
        whole = self._whole.get(previous.whole)
        whole = whole or await self._stored.summary(previous.whole, previous.whole_started)
        return differences(whole, summary) if whole else ()

    async def _written(self, summary: AttemptSummarized) -> AttemptSummarized | None:
        """What is written of the attempt so far."""
        cached = self._incomplete.get(summary.attempt_id)
        # A complete summary needs nothing from the index: if a version is there, the write ends in a conflict, and the
        # two are merged then. That is rare, a fetch for every attempt would not be.
        if cached or summary.complete:
            return cached
        return await self._stored.summary(summary.attempt_id, summary.started_at)

    def _dead_letter_document(self, batch: WriteBatch, document: Document, cause: str) -> None:
        logger.error("OpenSearch refuses document %s of %s: %.500s", document.id, document.index, cause)
        # Without an origin (the attempt was closed by time) there is no one record to keep: only the log has it.
        if document.origin is not None:
            self._dead_letter(
                batch, document.origin, f"OpenSearch refuses the document {document.id}: {cause}", "document"
            )

    def _dead_letter(self, batch: WriteBatch, source: Source, cause: str, kind: str) -> None:
        self._metrics.dead_letters(kind).inc()
        batch.outgoing.append(dead_letter(source, cause, datetime.now(UTC)))

    def _count(self, summary: AttemptSummarized, new_lines: Sequence[MessageEmitted]) -> None:
        self._metrics.attempts(summary.status, str(summary.complete).lower()).inc()
        for message in new_lines:
            self._metrics.messages(message.reason).inc()
