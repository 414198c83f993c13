"""Turns the writes of one round into a batch: leaves out what was published, merges, compares, counts."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from pipeline.dead_letters.codec import Source, dead_letter
from pipeline.node_pools import pools_of
from pipeline.worker import attempt_records
from pipeline.worker.batch import HistoryKey, WriteBatch, not_placed
from pipeline.worker.comparison import attempt_before, known_attempt, was_published, with_published
from pipeline.worker.metrics import Metrics
from pipeline.worker.pod_histories import PodHistories
from pipeline.worker.published_summaries import PublishedSummaries
from pipeline.worker.writes import AttemptWrite, EarlyDevices, FindingWrite, QueuedWrite, RejectedRecord
from schemas.events import AttemptSummarized, MessageEmitted, PublishedAttempt
from schemas.events.pod_histories import history_key
from summaries.attempt_audit import findings
from summaries.episodes import continues_episode, differences, repeats, repetition
from summaries.merge import merged
from summaries.messages import messages
from summaries.retries import digests_of
from summaries.trends import contribution

logger = logging.getLogger(__name__)


class BatchBuilder:
    """Builds batches, one after the other: each is published before the next one is built."""

    def __init__(
        self, histories: PodHistories, summaries: PublishedSummaries, metrics: Metrics, node_pools: str
    ) -> None:
        self._histories = histories
        self._summaries = summaries
        self._metrics = metrics
        self._pool_of = pools_of(node_pools)

    async def build(self, writes: Sequence[QueuedWrite]) -> WriteBatch:
        """All that follows from these writes."""
        batch = WriteBatch()
        await self._histories.load({write.partition for write in writes if isinstance(write, AttemptWrite)})
        for write in writes:
            match write:
                case EarlyDevices():
                    batch.add_devices([write.device_record])
                case RejectedRecord():
                    self._dead_letter(batch, write.source, write.cause)
                case FindingWrite():
                    batch.add_finding(write.event)
                case AttemptWrite():
                    await self._add(batch, write)
        self._metrics.batch_attempts.observe(len(batch.summaries))
        return batch

    async def _add(self, batch: WriteBatch, write: AttemptWrite) -> None:
        """Add the attempt, merged with what was published of it, unless it adds nothing to that."""
        closed = write.closed
        summary, attempt_id = closed.summary, closed.summary.attempt_id
        written = batch.summaries.get(attempt_id) or self._summaries.cached(attempt_id)
        # A bind by itself may lack what the attempt says of its pod.
        named = written or summary
        key = HistoryKey(write.partition, history_key(named.cluster, named.pod, named.scheduler))
        history = batch.histories.get(key) or self._histories.get(*key)
        known = history and known_attempt(history, attempt_id)
        if history and was_published(history, closed):
            return
        if known and not known.may_get_more and summary.version <= known.version:
            return
        if known and not written:
            written = await self._summaries.of(known)
        if written:
            summary = merged(written, summary)
            if summary.version <= written.version:
                return
        before = attempt_before(history, summary)
        attempt, lines = await self._publish(batch, write, summary, written, before)
        batch.histories[key] = with_published(history, summary, attempt, closed)
        self._count(summary, lines)

    async def _publish(
        self,
        batch: WriteBatch,
        write: AttemptWrite,
        summary: AttemptSummarized,
        written: AttemptSummarized | None,
        before: PublishedAttempt | None,
    ) -> tuple[PublishedAttempt, list[MessageEmitted]]:
        """Add the attempt's records, of which ``written`` is published already; the attempt as the next one is compared
        with it, and the messages that are new."""
        digests = digests_of(summary)
        episode, episode_started_at, changes = summary.attempt_id, summary.started_at, list[str]()
        if before and continues_episode(before, summary, digests):
            episode, episode_started_at = before.episode, before.episode_started_at
        elif before:
            changes = await self._changes(batch, before, summary)
        lines = attempt_records.new_messages(messages(summary), written)
        is_repetition = before is not None and repeats(before, summary, digests)
        if before and is_repetition:
            batch.add_attempt(repetition(before, summary), lines)
        else:
            # A repetition has no detail of its own: that of the attempt that it repeats says the same.
            batch.add_devices(write.closed.device_records)
            own = {"episode": episode, "episode_started_at": episode_started_at, "changes": changes}
            batch.add_attempt(summary.model_copy(update=own), lines)
        for finding in findings(summary):
            batch.add_finding(finding)
        adds = contribution(summary, self._pool_of)
        replaces = contribution(written, self._pool_of) if written else None
        batch.outgoing.append(
            attempt_records.count_record(summary, write.closed.recorded_at, adds, replaces, write.partition)
        )
        batch.summaries[summary.attempt_id] = summary
        attempt = PublishedAttempt.model_construct(
            attempt_id=summary.attempt_id,
            started_at=summary.started_at,
            version=summary.version,
            status=summary.status,
            ended_at=summary.ended_at,
            verdict_digest=digests.verdicts,
            detail_digest=digests.detail,
            episode=episode,
            episode_started_at=episode_started_at,
            may_get_more=attempt_records.may_get_more(summary),
            whole=before.whole if before and is_repetition else not_placed(summary),
        )
        return attempt, lines

    async def _changes(self, batch: WriteBatch, before: PublishedAttempt, summary: AttemptSummarized) -> list[str]:
        whole = batch.summaries.get(before.whole.attempt_id) or await self._summaries.at(before.whole)
        return differences(whole, summary) if whole else []

    def _dead_letter(self, batch: WriteBatch, source: Source, cause: str) -> None:
        self._metrics.dead_letters.inc()
        batch.outgoing.append(dead_letter(source, cause, datetime.now(UTC)))

    def _count(self, summary: AttemptSummarized, new_lines: Sequence[MessageEmitted]) -> None:
        self._metrics.attempts(summary.status, str(summary.complete).lower()).inc()
        for message in new_lines:
            self._metrics.messages(message.reason).inc()
