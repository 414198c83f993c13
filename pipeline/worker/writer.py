"""Writes what the fold tells: in batches to the index and the topics, and only then are the records done.

While one batch is on its way the next one gathers, so that a busy worker writes large batches and an idle one writes
at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

from pipeline.dead_letters.codec import Source, dead_letter
from pipeline.metrics import Metrics
from pipeline.node_pools import pools_of
from pipeline.sinks.bulk import Document
from pipeline.sinks.findings import finding_write
from pipeline.sinks.kafka import Outgoing
from pipeline.sinks.msearch import Searchable
from pipeline.sinks.opensearch import WriteResult
from pipeline.worker import attempt_documents
from pipeline.worker.byte_budget import ByteBudget
from pipeline.worker.device_documents import DeviceDocuments
from pipeline.worker.minute_counts import (
    PAGE,
    MinuteCounts,
    MinuteKey,
    attempts_search,
    minute_of,
    rows_search,
)
from pipeline.worker.open_attempts import DeviceRecord
from pipeline.worker.pod_history import PodHistory, Predecessor, previous_attempt_of
from schemas.codec.records import Rejected
from schemas.documents.attempts import Digests, EpisodeRef, MinuteContribution, repeated_of, summary_of, verdict_digest
from schemas.events import AttemptSummarized, FindingReported, MessageEmitted
from schemas.indices import ATTEMPTS
from summaries.attempt_audit import findings
from summaries.episodes import PreviousAttempt, continues_episode, differences, repeats, repetition
from summaries.fold import merged
from summaries.messages import messages
from summaries.retries import detail_digest, resolve
from summaries.trends import contribution

logger = logging.getLogger(__name__)

_PODS_A_QUESTION: Final = 1_000

Done = Callable[[], None]
"""Called when what it belongs to is written."""


class DocumentIndex(Searchable, Protocol):
    async def write(self, documents: Sequence[Document]) -> WriteResult: ...
    async def fetch(self, index: str, document_id: str) -> dict[str, object] | None: ...
    def forget(self) -> None: ...


class TopicPublisher(Protocol):
    async def send(self, outgoing: Sequence[Outgoing]) -> None: ...


@dataclass(frozen=True, slots=True)
class WriterPolicy:
    linger_seconds: float = 0.015
    queue_bytes: int = 32 * 1024 * 1024
    remembered_bytes: int = 64 * 1024 * 1024
    compared_bytes: int = 16 * 1024 * 1024
    count_seconds: float = 0.0
    node_pools: str = ""


class AttemptWrite(NamedTuple):
    """An attempt to be told, and the record that ended it."""

    summary: AttemptSummarized
    origin: Source | None
    done: Done
    rows: Sequence[DeviceRecord] = ()
    partition: int = 0

    @property
    def size(self) -> int:
        return 2 * attempt_documents.size_of(self.summary) + sum(len(each.value) for each in self.rows)


class EarlyDevices(NamedTuple):
    """A record of devices judged that can't wait for its attempt. It is done when the attempt is."""

    rows: DeviceRecord

    @property
    def size(self) -> int:
        return len(self.rows.value)


class RejectedRecord(NamedTuple):
    """A record that can't be understood."""

    source: Source
    cause: str
    done: Done

    @property
    def size(self) -> int:
        return len(self.source.value or b"") + 1_000


class FindingWrite(NamedTuple):
    """A finding of whoever told the decision."""

    event: FindingReported
    origin: Source
    done: Done

    @property
    def size(self) -> int:
        return 2_000 + sum(map(len, self.event.evidence))


QueuedWrite = AttemptWrite | EarlyDevices | RejectedRecord | FindingWrite


class PodComparison(NamedTuple):
    """Where an attempt stands among those of its pod."""

    told: PreviousAttempt
    before: PreviousAttempt | None
    is_repetition: bool


@dataclass(slots=True)
class WriteBatch:
    devices: list[DeviceRecord] = field(default_factory=list)
    attempts: dict[str, Document] = field(default_factory=dict)
    """By id: of two tellings in one batch the index needs the last one only, the topic gets both."""
    findings: dict[str, Document] = field(default_factory=dict)
    outgoing: list[Outgoing] = field(default_factory=list)
    told: dict[str, AttemptSummarized] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)

    def tell(
        self,
        summary: AttemptSummarized,
        known: AttemptSummarized | None,
        place: PodComparison,
        item: AttemptWrite,
        counted: MinuteContribution,
    ) -> list[MessageEmitted]:
        """Gives the messages that are new."""
        lines = messages(summary)
        new_lines, origin = attempt_documents.new_messages(lines, known), item.origin
        if place.is_repetition and place.before:
            event = repetition(place.before, summary)
            self.attempts[summary.attempt_id] = attempt_documents.repetition_document(
                summary, place.told, event, counted, origin
            )
            self.outgoing += attempt_documents.attempt_records(summary, new_lines, event)
        else:
            document = attempt_documents.summary_document(
                summary, lines, place.told.episode, place.told.digests, counted, origin
            )
            self.attempts[summary.attempt_id] = document
            told = attempt_documents.with_changes(summary, place.told.episode)
            self.outgoing += attempt_documents.attempt_records(told, new_lines)
            self.devices += item.rows
        self.told[summary.attempt_id] = summary
        self.partitions[summary.attempt_id] = item.partition
        for each in findings(summary):
            self.find(each, summary.version, origin)
        return new_lines

    def find(self, event: FindingReported, version: int | None, origin: object) -> None:
        document, outgoing = finding_write(event, version, origin)
        self.findings[document.id] = document
        self.outgoing.append(outgoing)


class Writer:
    def __init__(
        self, index: DocumentIndex, topics: TopicPublisher, metrics: Metrics, budget: ByteBudget, policy: WriterPolicy
    ) -> None:
        self._index = index
        self._topics = topics
        self._metrics = metrics
        self._budget = budget
        self._policy = policy
        self._queue: list[QueuedWrite] = []
        self._queued_bytes = 0
        self._is_writing = False
        self._changed = asyncio.Condition()
        self.remembered = attempt_documents.SummaryCache(policy.remembered_bytes)
        self._compared = attempt_documents.SummaryCache(policy.compared_bytes, lambda _: True)
        self._device_documents = DeviceDocuments()
        self.pods = PodHistory()
        self.minutes = MinuteCounts(pools_of(policy.node_pools))
        self._uncounted: list[Done] = []
        self._counted_at = 0.0
        self._hurried = 0

    async def put(self, item: QueuedWrite) -> None:
        """Hand something over; waits until the budget allows it."""
        await self._budget.acquire(item.size)
        self._queue.append(item)
        self._queued_bytes += item.size
        async with self._changed:
            self._changed.notify_all()

    def forget(self) -> None:
        """Partitions have moved: what was remembered of their attempts may be out of date when they come back."""
        self.remembered.clear()
        self._compared.clear()
        self._device_documents.clear()
        self.pods.clear()
        self.minutes.clear()
        self._uncounted.clear()
        self._index.forget()

    async def drained(self) -> None:
        """Return when all that was handed over is written."""
        async with self._changed:
            self._hurried += 1
            self._changed.notify_all()
            try:
                await self._changed.wait_for(lambda: not self._queue and not self._is_writing and not self._uncounted)
            finally:
                self._hurried -= 1

    async def run(self) -> None:
        """Write for ever. Raises what can't be waited for: ``NotProvisionedError``."""
        while True:
            items = await self._take()
            await self._write(items)
            self._uncounted += [item.done for item in items if not isinstance(item, EarlyDevices)]
            if self._must_count():
                await self._count_minutes()
            async with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def _must_count(self) -> bool:
        is_last = self._hurried > 0 and not self._queue
        return bool(self._uncounted) and (is_last or time.monotonic() >= self._counted_at + self._policy.count_seconds)

    async def _count_minutes(self) -> None:
        """Write the minutes that changed; only then are the records of their attempts done."""
        done, self._uncounted = self._uncounted, []
        documents, outgoing = self.minutes.take()
        await asyncio.gather(self._index.write(documents), self._topics.send(outgoing))
        self._counted_at = time.monotonic()
        for each in done:
            each()

    async def _something_to_do(self) -> None:
        """Return when there is something to write, or minutes have waited long enough to be counted."""
        seconds = self._counted_at + self._policy.count_seconds - time.monotonic() if self._uncounted else None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: bool(self._queue or (self._hurried and self._uncounted)))

    async def _take(self) -> list[QueuedWrite]:
        await self._something_to_do()
        if self._queue and not self._budget.has_waiters:
            await asyncio.sleep(self._policy.linger_seconds)
        async with self._changed:
            taken, size, self._queue, self._queued_bytes = self._queue, self._queued_bytes, [], 0
            self._is_writing = True
        await self._budget.release(size)
        return taken

    async def _write(self, items: Sequence[QueuedWrite]) -> None:
        batch = WriteBatch()
        told = [item for item in items if isinstance(item, AttemptWrite)]
        looked_up = await self._look_up([item.summary for item in told])
        await self._load_minutes([minute_of(item.partition, item.summary.started_at) for item in told])
        for item in items:
            match item:
                case EarlyDevices():
                    batch.devices.append(item.rows)
                case RejectedRecord():
                    self._set_aside(batch, item.source, item.cause, "record")
                case FindingWrite():
                    batch.find(item.event, None, item.origin)
                case AttemptWrite():
                    await self._tell(batch, item, looked_up.get(item.summary.attempt_id))
        self._metrics.batch_attempts.observe(len(batch.told))
        await self._send(batch)

    async def _look_up(self, summaries: Sequence[AttemptSummarized]) -> dict[str, Predecessor]:
        """By attempt id, what came before attempts of pods that memory does not know."""
        unknown = {each.attempt_id: each for each in summaries if self.pods.before(each) is None}
        first_of_pod = list({(each.pod, each.scheduler): each for each in reversed(unknown.values())}.values())
        new = await self._new_pods(first_of_pod)
        before = await self._before([each for each in first_of_pod if each.pod.uid not in new])
        return before | {each.attempt_id: Predecessor(None) for each in first_of_pod if each.pod.uid in new}

    async def _new_pods(self, summaries: Sequence[AttemptSummarized]) -> set[str]:
        """The UIDs of those that the index has nothing of: most, and one question tells them all."""
        named = [each for each in summaries if each.pod.uid]
        new = {each.pod.uid for each in named}
        for start in range(0, len(named), _PODS_A_QUESTION):
            (hits,) = await self._index.search(
                [attempt_documents.known_pods_search(named[start : start + _PODS_A_QUESTION])]
            )
            new -= {uid for hit in hits for uid in hit["fields"]["pod_uid"]}
        return new

    async def _load_minutes(self, wanted: Sequence[MinuteKey]) -> None:
        """All at once: after a takeover they are many, and records wait for them."""
        unknown = self.minutes.unknown(wanted)
        rows = await self._index.search([rows_search(which) for which in unknown]) if unknown else []
        attempts: dict[MinuteKey, list[dict[str, Any]]] = {which: [] for which in unknown}
        going_on = unknown
        while going_on:
            last = [attempts[which][-1]["attempt_id"] if attempts[which] else "" for which in going_on]
            pages = await self._index.search(list(map(attempts_search, going_on, last)))
            for which, page in zip(going_on, pages, strict=True):
                attempts[which] += [hit["_source"] for hit in page]
            going_on = [which for which, page in zip(going_on, pages, strict=True) if len(page) == PAGE]
        for which, found in zip(unknown, rows, strict=True):
            self.minutes.load(which, attempts[which], [hit["_source"] for hit in found])

    async def _before(self, summaries: Sequence[AttemptSummarized]) -> dict[str, Predecessor]:
        if not summaries:
            return {}
        answers = await self._index.search([attempt_documents.previous_attempt_search(each) for each in summaries])
        found = (previous_attempt_of(hits[0].get("_source") or {}) if hits else None for hits in answers)
        return {each.attempt_id: Predecessor(told) for each, told in zip(summaries, found, strict=True)}

    async def _tell(self, batch: WriteBatch, item: AttemptWrite, looked_up: Predecessor | None) -> None:
        summary = item.summary
        known = batch.told.get(summary.attempt_id) or await self._known(summary)
        await self._tell_more(batch, known, item, looked_up)

    async def _tell_more(
        self,
        batch: WriteBatch,
        known: AttemptSummarized | None,
        item: AttemptWrite,
        looked_up: Predecessor | None = None,
    ) -> None:
        """What both tellings say, unless ``known`` says it all."""
        whole = merged(known, item.summary) if known else item.summary
        if known and whole.version <= known.version:
            return
        place = await self._place(whole, looked_up)
        adds = contribution(whole, self.minutes.pool_of)
        counted = MinuteContribution(item.partition, adds.plain())
        self._count(whole, batch.tell(whole, known, place, item, counted))
        self.minutes.put(item.partition, whole.started_at, adds)
        self.remembered.put(whole)
        self.pods.put(whole, place.told, place.before)
        if not place.is_repetition:
            self._compared.put(whole)

    async def _place(self, summary: AttemptSummarized, looked_up: Predecessor | None) -> PodComparison:
        before = self.pods.before(summary) or looked_up or (await self._before([summary]))[summary.attempt_id]
        told = before.told
        digests = Digests(verdict_digest(summary), detail_digest(summary))
        is_repetition = repeats(told, summary, digests)
        if told and continues_episode(told, summary, digests):
            episode = told.episode._replace(changes=())
        else:
            episode = EpisodeRef(summary.attempt_id, summary.started_at, await self._changes(told, summary))
        whole = (told.whole, told.whole_started) if told and is_repetition else (summary.attempt_id, summary.started_at)
        now = PreviousAttempt(
            summary.attempt_id, summary.scheduler, summary.pod.uid, summary.started_at, summary.status,
            digests, episode, *whole,
        )  # fmt: skip
        return PodComparison(now, told, is_repetition)

    async def _changes(self, before: PreviousAttempt | None, summary: AttemptSummarized) -> Sequence[str]:
        if before is None:
            return ()
        whole = self._compared.get(before.whole) or await self._stored(before.whole, before.whole_started)
        return differences(whole, summary) if whole else ()

    async def _known(self, summary: AttemptSummarized) -> AttemptSummarized | None:
        """What was told of the attempt before. Only a telling in part is worth asking the index for the rest of it."""
        known = self.remembered.get(summary.attempt_id)
        return known if known or summary.complete else await self._indexed(summary)

    async def _indexed(self, summary: AttemptSummarized) -> AttemptSummarized | None:
        return await self._stored(summary.attempt_id, summary.started_at)

    async def _stored(self, attempt_id: str, started_at: datetime) -> AttemptSummarized | None:
        found = await self._index.fetch(ATTEMPTS.name(started_at), attempt_id)
        if found is None or not isinstance(document := found.get("_source"), dict):
            return None
        event = repeated_of(document)
        if event is not None and not isinstance(event, Rejected):
            whole = await self._stored(event.repeats, event.repeats_started_at)
            return resolve(event, whole) if whole else None
        known = summary_of(document)
        if isinstance(known, Rejected):
            logger.error("the index holds attempt %s in a form that can't be read: %s", attempt_id, known)
            return None
        return known

    async def _send(self, batch: WriteBatch) -> None:
        """Both at once: the topic serves the latest pods also while the index is down."""
        devices = chain.from_iterable(map(self._device_documents.of, batch.devices))
        documents = [*devices, *batch.attempts.values(), *batch.findings.values()]
        written, _ = await asyncio.gather(self._index.write(documents), self._topics.send(batch.outgoing))
        more = WriteBatch()
        for document, cause in written.refused:
            self._refuse(more, document, cause)
        for document in written.conflicts:
            if document.id in batch.told:
                await self._reconcile(
                    more,
                    AttemptWrite(batch.told[document.id], document.origin, _nothing, (), batch.partitions[document.id]),
                )
        if more.attempts or more.outgoing:
            await self._send(more)

    async def _reconcile(self, batch: WriteBatch, item: AttemptWrite) -> None:
        """The index holds a newer telling, of another worker or of a time before a restart: say what both say."""
        if (known := await self._indexed(item.summary)) is not None:
            await self._tell_more(batch, known, item)

    def _refuse(self, batch: WriteBatch, document: Document, cause: str) -> None:
        logger.error("OpenSearch refuses document %s of %s: %.500s", document.id, document.index, cause)
        if document.origin is not None:
            self._set_aside(
                batch, document.origin, f"OpenSearch refuses the document {document.id}: {cause}", "document"
            )

    def _set_aside(self, batch: WriteBatch, source: Source, cause: str, kind: str) -> None:
        self._metrics.dead_letters(kind).inc()
        batch.outgoing.append(dead_letter(source, cause, datetime.now(UTC)))

    def _count(self, summary: AttemptSummarized, new_lines: Sequence[MessageEmitted]) -> None:
        self._metrics.attempts(summary.status, str(summary.complete).lower()).inc()
        for message in new_lines:
            self._metrics.messages(message.reason).inc()


def _nothing() -> None:
    """What a telling that is told a second time has still to do when it is written."""
