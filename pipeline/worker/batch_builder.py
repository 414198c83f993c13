"""Turns the writes of one round into a batch: leaves out what was published, merges, compares, counts."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from engine.summaries.attempt_audit import audit_attempt
from engine.summaries.episodes import build_repetition, continues_episode, describe_changes, repeats
from engine.summaries.fold import summarize
from engine.summaries.matching import is_refused, match
from engine.summaries.node_pools import parse_pools
from engine.summaries.reports import combine
from engine.summaries.retries import derive_digests, restore_unchanged, reuse_digests
from pipeline.dead_letter import to_dead_letter
from pipeline.metrics import WorkerMetrics
from pipeline.worker.batch import (
    HistoryKey,
    WriteBatch,
    encode_count,
    gives_devices,
    may_get_more,
    rename_devices,
    reserve_location,
    select_new_messages,
)
from pipeline.worker.comparison import (
    PodPast,
    Predecessors,
    derive_past,
    find_attempt,
    find_original,
    find_predecessors,
    find_version,
    is_read_again,
    list_reports,
    was_published,
    with_published,
)
from pipeline.worker.derivations import Derivations
from pipeline.worker.open_attempts import ClosedAttempt
from pipeline.worker.published import PodHistories, PublishedSummaries
from pipeline.worker.write_queue import (
    AttemptWrite,
    EarlyDevices,
    FindingWrite,
    QueuedWrite,
    RejectedRecord,
    UnchangedWrite,
)
from runtime.kafka.record import Record, identify_attempt
from schemas.events import AttemptSummarized, Contribution, MessagesEmitted, PodHistoryChanged, PublishedAttempt
from schemas.events.pod_histories import build_history_key

logger = logging.getLogger(__name__)


class MatchedAttempt(NamedTuple):
    """The published attempt that a report belongs to."""

    entry: PublishedAttempt | None
    written: AttemptSummarized | None
    candidates: list[str]
    """Ids of the attempts that a new one may duplicate."""

    @property
    def is_stored_in_full(self) -> bool:
        """True if it was published in full. Then it stays so, because another attempt may refer to it."""
        return self.entry is not None and self.entry.whole.attempt_id == self.entry.attempt_id

    def merge(self, report: AttemptSummarized) -> AttemptSummarized:
        """Add the report to what is published of the attempt."""
        if self.written:
            return combine(self.written, report)
        return report.model_copy(update={"may_duplicate": self.candidates}) if self.candidates else report


class BatchBuilder:
    """Builds batches, one after the other: each is published before the next one is built."""

    def __init__(
        self, histories: PodHistories, summaries: PublishedSummaries, metrics: WorkerMetrics, node_pools: str
    ) -> None:
        self._histories = histories
        self._summaries = summaries
        self._metrics = metrics
        self._derivations = Derivations(parse_pools(node_pools))

    async def build(self, writes: Sequence[QueuedWrite]) -> WriteBatch:
        """Build the batch of everything that follows from these writes."""
        batch = WriteBatch()
        histories = await self._histories.read(
            {_identify(write) for write in writes if isinstance(write, AttemptWrite | UnchangedWrite)}
        )
        for write in writes:
            match write:
                case EarlyDevices():
                    batch.add_devices([write.device_record])
                case RejectedRecord():
                    self._add_dead_letter(batch, write.record, write.cause)
                case FindingWrite():
                    batch.add_finding(write.event)
                case AttemptWrite():
                    await self._add(batch, write, histories)
                case UnchangedWrite():
                    await self._add(batch, await self._restore(batch, write, histories), histories)
        self._metrics.batch_attempts.observe(len(batch.summaries))
        return batch

    async def _add(
        self, batch: WriteBatch, write: AttemptWrite, histories: Mapping[HistoryKey, PodHistoryChanged]
    ) -> None:
        """Add the attempt that the report is about, with what was published of it, unless the report adds nothing."""
        closed = write.closed
        report = closed.summary
        key = _identify(write)
        history = batch.histories.get(key) or histories.get(key)
        if history and was_published(history, closed):
            return
        matched = await self._match(batch, history, report)
        if matched is None:
            return
        summary = matched.merge(report)
        if matched.written and summary.version <= matched.written.version:
            return
        earlier, past = find_predecessors(history, summary, closed), derive_past(history, summary)
        attempt, messages = await self._publish(batch, write, summary, matched, earlier, past)
        batch.histories[key] = with_published(history, summary, attempt, closed, past)
        self._count(summary, messages)

    async def _restore(
        self, batch: WriteBatch, write: UnchangedWrite, histories: Mapping[HistoryKey, PodHistoryChanged]
    ) -> AttemptWrite:
        """Restore an attempt that its source found unchanged; one of which the original is lost is incomplete."""
        event, key = write.event, _identify(write)
        original = find_original(batch.histories.get(key) or histories.get(key), event.repeats)
        full_summary = await self._load_full(batch, original) if original else None
        try:
            summary = restore_unchanged(event, full_summary) if full_summary else summarize([event])
        except ValueError as error:
            logger.warning("%s", error, extra=identify_attempt(event))
            summary = summarize([event])
        closed = ClosedAttempt(summary, (write.offset,), write.recorded_at, trace=write.trace, repeats=event.repeats)
        return AttemptWrite(closed, write.partition, write.on_written, write.trace)

    async def _load_full(self, batch: WriteBatch, attempt: PublishedAttempt) -> AttemptSummarized | None:
        """Load the summary that the attempt has or repeats."""
        return batch.summaries.get(attempt.whole.attempt_id) or await self._summaries.load_at(attempt.whole)

    async def _match(
        self, batch: WriteBatch, history: PodHistoryChanged | None, report: AttemptSummarized
    ) -> MatchedAttempt | None:
        """Find the attempt that the report belongs to; None if the report adds nothing to it."""
        entry = find_attempt(history, report.attempt_id)
        if entry:
            published = find_version(entry, report.attempt_id)
            # Of several reports one may be whole and another not: only putting them together shows what is new.
            is_complete = not entry.may_get_more and len(entry.reports) == 1
            if is_complete and published is not None and report.version <= published:
                return None
            written = await self._load_summary(batch, entry)
            return MatchedAttempt(entry, written, [])
        # An older one than the history has may still be in memory.
        if written := self._get_cached(batch, report.attempt_id):
            return MatchedAttempt(None, written, [])
        if history and is_read_again(history, report):
            return None
        predecessor, candidates = match(history.attempts, report) if history else (None, [])
        if predecessor and not (written := await self._load_summary(batch, predecessor)):
            # Its records are past their retention: nothing could be put together.
            return MatchedAttempt(None, None, [predecessor.attempt_id])
        return MatchedAttempt(predecessor, written, candidates)

    async def _load_summary(self, batch: WriteBatch, entry: PublishedAttempt) -> AttemptSummarized | None:
        return self._get_cached(batch, entry.attempt_id) or await self._summaries.load(entry)

    def _get_cached(self, batch: WriteBatch, attempt_id: str) -> AttemptSummarized | None:
        return batch.summaries.get(attempt_id) or self._summaries.get_cached(attempt_id)

    async def _publish(
        self,
        batch: WriteBatch,
        write: AttemptWrite,
        summary: AttemptSummarized,
        matched: MatchedAttempt,
        earlier: Predecessors,
        past: PodPast,
    ) -> tuple[PublishedAttempt, list[MessagesEmitted]]:
        """Add the attempt's records, some of which may be published already.

        Return the attempt's entry in the history, with which the next one is compared, and the messages that are new.
        """
        written, (before, original) = matched.written, earlier
        is_unchanged = bool(write.closed.repeats)
        digests = (is_unchanged and original and reuse_digests(original, summary)) or derive_digests(summary)
        episode, episode_started_at, changes = summary.attempt_id, summary.started_at, list[str]()
        if before and continues_episode(before, summary, digests):
            episode, episode_started_at = before.episode, before.episode_started_at
        elif before:
            changes = await self._describe_changes(batch, before, summary)
        is_repetition = not matched.is_stored_in_full and repeats(original, summary, digests, is_unchanged=is_unchanged)
        derived = self._derivations.derive(summary, digests, is_repetition=is_repetition)
        messages = select_new_messages(derived.messages, written)
        pod_fields = {"first_judged_at": past.first_judged_at, "attempts": past.attempts, "wait": derived.wait}
        repeated = None
        if original and is_repetition:
            # Another source's attempt may lie between an unchanged one and its original: then an episode begins.
            in_episode = original.model_copy(update={"episode": episode, "episode_started_at": episode_started_at})
            with_past = summary.model_copy(update={**pod_fields, "description": past.description})
            repeated = build_repetition(in_episode, with_past, digests)
        if repeated:
            batch.add_attempt(repeated, messages, write.trace)
        else:
            # A repetition has no detail of its own: that of the attempt that it repeats says the same.
            self._add_devices(batch, write.closed, summary, written)
            compared = {
                "episode": episode, "episode_started_at": episode_started_at, "changes": changes,
                **pod_fields,
            }  # fmt: skip
            batch.add_attempt(summary.model_copy(update=compared), messages, write.trace)
        for finding in audit_attempt(summary):
            batch.add_finding(finding)
        replaces = self._derive_counted(written, matched.entry) if written else None
        batch.outgoing.append(encode_count(summary, write.closed.recorded_at, derived.adds, replaces, write.partition))
        batch.summaries[summary.attempt_id] = summary
        attempt = PublishedAttempt.model_construct(
            attempt_id=summary.attempt_id,
            pod_uid=summary.pod.uid,
            started_at=summary.started_at,
            version=summary.version,
            status=summary.status,
            ended_at=summary.ended_at,
            chosen=summary.chosen,
            is_refused=is_refused(summary),
            reports=list_reports(matched.entry, summary, write.closed),
            first_judged_at=past.first_judged_at,
            attempts=past.attempts,
            verdict_digest=digests.verdicts,
            detail_digest=digests.detail,
            added_digest=digests.added,
            episode=episode,
            episode_started_at=episode_started_at,
            obstacle=derived.wait.code if derived.wait else "",
            may_get_more=may_get_more(summary),
            whole=original.whole if original and repeated else reserve_location(summary),
            scheduler_message=repeated.scheduler_message if repeated else None,
            nominated=repeated.nominated if repeated else None,
        )
        return attempt, messages

    def _derive_counted(self, written: AttemptSummarized, entry: PublishedAttempt | None) -> Contribution:
        """Derive the contribution under which the published attempt is counted."""
        if entry:
            # As it was counted: another version of this program may name another obstacle, or named none.
            return self._derivations.derive_contribution(written, entry.obstacle)
        wait = self._derivations.derive_wait(written, derive_digests(written).verdicts)
        return self._derivations.derive_contribution(written, wait.code if wait else "")

    @staticmethod
    def _add_devices(
        batch: WriteBatch, closed: ClosedAttempt, summary: AttemptSummarized, written: AttemptSummarized | None
    ) -> None:
        """Add the report's device verdicts, under the id of its attempt; of one report only, because two would count
        the same devices."""
        report_id = closed.summary.attempt_id
        if report_id == summary.attempt_id:
            batch.add_devices(closed.device_records)
        elif gives_devices(report_id, summary, written):
            batch.add_rows(rename_devices(closed.device_records, summary))

    async def _describe_changes(
        self, batch: WriteBatch, before: PublishedAttempt, summary: AttemptSummarized
    ) -> list[str]:
        full_summary = await self._load_full(batch, before)
        return describe_changes(full_summary, summary) if full_summary else []

    def _add_dead_letter(self, batch: WriteBatch, record: Record, cause: str) -> None:
        self._metrics.dead_letters.inc()
        batch.outgoing.append(to_dead_letter(record, cause, datetime.now(UTC)))

    def _count(self, summary: AttemptSummarized, new_messages: Sequence[MessagesEmitted]) -> None:
        self._metrics.attempts(summary.status, str(summary.complete).lower()).inc()
        for messages in new_messages:
            self._metrics.messages(messages.reason).inc(len(messages.lines))


def _identify(write: AttemptWrite | UnchangedWrite) -> HistoryKey:
    """Identify the history of the attempt's pod."""
    attempt = write.closed.summary if isinstance(write, AttemptWrite) else write.event
    return HistoryKey(write.partition, build_history_key(attempt.cluster, attempt.pod, attempt.scheduler))
