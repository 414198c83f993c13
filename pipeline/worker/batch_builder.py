"""Turns the writes of one round into a batch: leaves out what was published, merges, compares, counts."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from engine.diagnosis.waiting import wait_of
from engine.summaries.attempt_audit import findings
from engine.summaries.episodes import continues_episode, differences, repeats, repetition
from engine.summaries.matching import is_refused, match
from engine.summaries.messages import messages
from engine.summaries.reports import combined
from engine.summaries.retries import ADDED, digests_of
from engine.summaries.trends import contribution
from pipeline.dead_letter import Source, dead_letter
from pipeline.node_pools import pools_of
from pipeline.worker import attempt_records
from pipeline.worker.batch import HistoryKey, WriteBatch, not_placed
from pipeline.worker.comparison import (
    PodPast,
    attempt_before,
    known_attempt,
    past_of,
    published_reports,
    published_version,
    was_published,
    with_published,
)
from pipeline.worker.metrics import Metrics
from pipeline.worker.open_attempts import ClosedAttempt
from pipeline.worker.pod_histories import PodHistories
from pipeline.worker.published_summaries import PublishedSummaries
from pipeline.worker.writes import AttemptWrite, EarlyDevices, FindingWrite, QueuedWrite, RejectedRecord
from schemas.events import AttemptSummarized, MessageEmitted, PodHistoryChanged, PodWait, PublishedAttempt
from schemas.events.pod_histories import history_key

logger = logging.getLogger(__name__)


class FoundAttempt(NamedTuple):
    """The attempt that a report is about, as far as it was published."""

    known: PublishedAttempt | None
    written: AttemptSummarized | None
    may_be: list[str]
    """The attempts that a new one may be another report of."""

    @property
    def is_whole(self) -> bool:
        """Was it published as a whole? Then it stays so: another attempt may refer to it."""
        return self.known is not None and self.known.whole.attempt_id == self.known.attempt_id

    def whole(self, own: AttemptSummarized) -> AttemptSummarized:
        """The attempt with the report ``own``."""
        if self.written:
            return combined(self.written, own)
        return own.model_copy(update={"may_duplicate": self.may_be}) if self.may_be else own


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
        """Add the attempt that the report is about, with what was published of it, unless the report adds nothing."""
        closed = write.closed
        own = closed.summary
        key = HistoryKey(write.partition, history_key(own.cluster, own.pod, own.scheduler))
        history = batch.histories.get(key) or self._histories.get(*key)
        if history and was_published(history, closed):
            return
        found = await self._found(batch, history, own)
        if found is None:
            return
        summary = found.whole(own)
        if found.written and summary.version <= found.written.version:
            return
        before = attempt_before(history, summary)
        past = past_of(history, summary)
        attempt, lines = await self._publish(batch, write, summary, found, before, past)
        batch.histories[key] = with_published(history, summary, attempt, closed)
        self._count(summary, lines)

    async def _found(
        self, batch: WriteBatch, history: PodHistoryChanged | None, own: AttemptSummarized
    ) -> FoundAttempt | None:
        """The attempt that the report is about; None where the report is known to add nothing to it."""
        known = known_attempt(history, own.attempt_id)
        if known:
            published = published_version(known, own.attempt_id)
            # Of several reports one may be whole and another not: only putting them together shows what is new.
            is_whole = not known.may_get_more and len(known.reports) == 1
            if is_whole and published is not None and own.version <= published:
                return None
            written = await self._written(batch, known)
            return FoundAttempt(known, written, [])
        # An older one than the history has may still be in memory.
        if written := self._cached(batch, own.attempt_id):
            return FoundAttempt(None, written, [])
        found, may_be = match(history.attempts, own) if history else (None, [])
        if found and not (written := await self._written(batch, found)):
            # Its records are past their retention: nothing could be put together.
            return FoundAttempt(None, None, [found.attempt_id])
        return FoundAttempt(found, written, may_be)

    async def _written(self, batch: WriteBatch, known: PublishedAttempt) -> AttemptSummarized | None:
        return self._cached(batch, known.attempt_id) or await self._summaries.of(known)

    def _cached(self, batch: WriteBatch, attempt_id: str) -> AttemptSummarized | None:
        return batch.summaries.get(attempt_id) or self._summaries.cached(attempt_id)

    def _wait(self, summary: AttemptSummarized, repeated: AttemptSummarized | None) -> PodWait | None:
        """Why the pod waits; what is known of the attempt that this one repeats, as long as the texts are the same."""
        # Making it takes as long as a fifth of all else about a refused attempt, and most attempts are retries.
        if repeated and repeated.wait and all(getattr(repeated, name) == getattr(summary, name) for name in ADDED):
            return repeated.wait
        return wait_of(summary, self._pool_of)

    async def _publish(
        self,
        batch: WriteBatch,
        write: AttemptWrite,
        summary: AttemptSummarized,
        found: FoundAttempt,
        before: PublishedAttempt | None,
        past: PodPast,
    ) -> tuple[PublishedAttempt, list[MessageEmitted]]:
        """Add the attempt's records, some of which may be published already; the attempt as the next one is compared
        with it, and the messages that are new."""
        written = found.written
        digests = digests_of(summary)
        episode, episode_started_at, changes = summary.attempt_id, summary.started_at, list[str]()
        if before and continues_episode(before, summary, digests):
            episode, episode_started_at = before.episode, before.episode_started_at
        elif before:
            changes = await self._changes(batch, before, summary)
        lines = attempt_records.new_messages(messages(summary), written)
        is_repetition = before is not None and not found.is_whole and repeats(before, summary, digests)
        whole = self._cached(batch, before.whole.attempt_id) if before and is_repetition else None
        wait = self._wait(summary, whole)
        of_pod = {"first_judged_at": past.first_judged_at, "attempts": past.attempts, "wait": wait}
        with_past = summary.model_copy(update={**of_pod, "description": past.description})
        repeated = repetition(before, with_past, digests) if before and is_repetition else None
        if repeated:
            batch.add_attempt(repeated, lines, write.trace)
        else:
            # A repetition has no detail of its own: that of the attempt that it repeats says the same.
            self._add_devices(batch, write.closed, summary, written)
            compared = {
                "episode": episode, "episode_started_at": episode_started_at, "changes": changes,
                **of_pod,
            }  # fmt: skip
            batch.add_attempt(summary.model_copy(update=compared), lines, write.trace)
        for finding in findings(summary):
            batch.add_finding(finding)
        adds = contribution(summary, self._pool_of)
        replaces = contribution(written, self._pool_of) if written else None
        batch.outgoing.append(
            attempt_records.count_record(summary, write.closed.recorded_at, adds, replaces, write.partition)
        )
        batch.summaries[summary.attempt_id] = summary.model_copy(update={"wait": wait})
        attempt = PublishedAttempt.model_construct(
            attempt_id=summary.attempt_id,
            pod_uid=summary.pod.uid,
            started_at=summary.started_at,
            version=summary.version,
            status=summary.status,
            ended_at=summary.ended_at,
            chosen=summary.chosen,
            is_refused=is_refused(summary),
            reports=published_reports(found.known, summary, write.closed.summary),
            first_judged_at=past.first_judged_at,
            attempts=past.attempts,
            verdict_digest=digests.verdicts,
            detail_digest=digests.detail,
            added_digest=digests.added,
            episode=episode,
            episode_started_at=episode_started_at,
            may_get_more=attempt_records.may_get_more(summary),
            whole=before.whole if before and repeated else not_placed(summary),
            scheduler_message=repeated.scheduler_message if repeated else None,
            nominated=repeated.nominated if repeated else None,
        )
        return attempt, lines

    @staticmethod
    def _add_devices(
        batch: WriteBatch, closed: ClosedAttempt, summary: AttemptSummarized, written: AttemptSummarized | None
    ) -> None:
        """Add the report's device verdicts, under the id of its attempt; of one report only, because two would count
        the same devices."""
        report_id = closed.summary.attempt_id
        if report_id == summary.attempt_id:
            batch.add_devices(closed.device_records)
        elif attempt_records.gives_devices(report_id, summary, written):
            batch.add_rows(attempt_records.renamed(closed.device_records, summary))

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
