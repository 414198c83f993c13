"""Writes what the fold tells: in batches to the index and the topics, and only then are the records done.

While one batch is on its way the next one gathers, so that a busy worker writes large batches and an idle one writes
at once.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from pipeline import tellings
from pipeline.dead_letters import Source, dead_letter
from pipeline.metrics import Metrics
from pipeline.sinks.bulk import Document
from pipeline.sinks.kafka import Outgoing
from pipeline.sinks.opensearch import Written
from schemas.documents import summary_of
from schemas.events import AttemptSummarized, Message
from schemas.indices import ATTEMPTS
from schemas.records import Rejected
from summaries.fold import merged
from summaries.messages import messages

logger = logging.getLogger(__name__)

Done = Callable[[], None]
"""Called when what it belongs to is written."""


class Index(Protocol):
    async def write(self, documents: Sequence[Document]) -> Written: ...
    async def fetch(self, index: str, document_id: str) -> dict[str, object] | None: ...


class Topics(Protocol):
    async def send(self, outgoing: Sequence[Outgoing]) -> None: ...


@dataclass(frozen=True, slots=True)
class Policy:
    batch_attempts: int = 200
    linger_seconds: float = 0.015
    queue_bytes: int = 32 * 1024 * 1024
    remembered_bytes: int = 64 * 1024 * 1024


class Telling(NamedTuple):
    """An attempt to be told, and the record that ended it."""

    summary: AttemptSummarized
    origin: Source | None
    done: Done

    @property
    def size(self) -> int:
        return 2 * tellings.size_of(self.summary)


class Devices(NamedTuple):
    """The document of a record of devices judged. The record is done when its attempt is told."""

    document: Document

    @property
    def size(self) -> int:
        return self.document.size


class SetAside(NamedTuple):
    """A record that can't be understood."""

    source: Source
    cause: str
    done: Done

    @property
    def size(self) -> int:
        return len(self.source.value or b"") + 1_000


Item = Telling | Devices | SetAside


@dataclass(slots=True)
class _Batch:
    devices: list[Document] = field(default_factory=list)
    attempts: dict[str, Document] = field(default_factory=dict)
    """By id: of two tellings in one batch the index needs the last one only, the topic gets both."""
    outgoing: list[Outgoing] = field(default_factory=list)
    told: dict[str, AttemptSummarized] = field(default_factory=dict)

    def tell(self, summary: AttemptSummarized, known: AttemptSummarized | None, origin: object) -> list[Message]:
        """Gives the messages that are new."""
        lines = messages(summary)
        new_lines = tellings.unsaid(lines, known)
        self.attempts[summary.attempt_id] = tellings.document(summary, lines, origin)
        self.outgoing += tellings.records(summary, new_lines)
        self.told[summary.attempt_id] = summary
        return new_lines


class Writer:
    def __init__(self, index: Index, topics: Topics, metrics: Metrics, policy: Policy) -> None:
        self._index = index
        self._topics = topics
        self._metrics = metrics
        self._policy = policy
        self._queue: list[Item] = []
        self._queued_bytes = 0
        self._is_writing = False
        self._changed = asyncio.Condition()
        self.remembered = tellings.Remembered(policy.remembered_bytes)

    @property
    def queued_bytes(self) -> int:
        return self._queued_bytes

    async def put(self, item: Item) -> None:
        """Hand something over; waits while too much is waiting to be written."""
        async with self._changed:
            while self._queue and self._queued_bytes + item.size > self._policy.queue_bytes:
                await self._changed.wait()
            self._queue.append(item)
            self._queued_bytes += item.size
            self._changed.notify_all()

    def forget(self) -> None:
        """Partitions have moved: what was remembered of their attempts may be out of date when they come back."""
        self.remembered.clear()

    async def drained(self) -> None:
        """Return when all that was handed over is written."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._queue and not self._is_writing)

    async def run(self) -> None:
        """Write for ever. Raises what can't be waited for: ``NotProvisionedError``."""
        while True:
            items = await self._take()
            await self._write(items)
            for item in items:
                if not isinstance(item, Devices):
                    item.done()
            async with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    async def _take(self) -> list[Item]:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._queue))
        if self._queued_bytes < self._policy.queue_bytes // 4:
            await asyncio.sleep(self._policy.linger_seconds)
        async with self._changed:
            taken, self._queue, self._queued_bytes = self._queue, [], 0
            self._is_writing = True
            self._changed.notify_all()
        return taken

    async def _write(self, items: Sequence[Item]) -> None:
        batch = _Batch()
        for item in items:
            match item:
                case Devices():
                    batch.devices.append(item.document)
                case SetAside():
                    self._set_aside(batch, item.source, item.cause, "record")
                case Telling():
                    await self._tell(batch, item.summary, item.origin)
        self._metrics.batch_attempts.observe(len(batch.told))
        await self._send(batch)

    async def _tell(self, batch: _Batch, summary: AttemptSummarized, origin: Source | None) -> None:
        known = batch.told.get(summary.attempt_id) or await self._known(summary)
        self._tell_more(batch, known, summary, origin)

    def _tell_more(
        self, batch: _Batch, known: AttemptSummarized | None, summary: AttemptSummarized, origin: Source | None
    ) -> None:
        """What both tellings say, unless ``known`` says it all."""
        whole = merged(known, summary) if known else summary
        if known and whole.version <= known.version:
            return
        self._count(whole, batch.tell(whole, known, origin))
        self.remembered.put(whole)

    async def _known(self, summary: AttemptSummarized) -> AttemptSummarized | None:
        """What was told of the attempt before. Only a telling in part is worth asking the index for the rest of it."""
        known = self.remembered.get(summary.attempt_id)
        return known if known or summary.complete else await self._indexed(summary)

    async def _indexed(self, summary: AttemptSummarized) -> AttemptSummarized | None:
        found = await self._index.fetch(ATTEMPTS.name(summary.started), summary.attempt_id)
        if found is None or not isinstance(document := found.get("_source"), dict):
            return None
        known = summary_of(document)
        if isinstance(known, Rejected):
            logger.error("the index holds attempt %s in a form that can't be read: %s", summary.attempt_id, known)
            return None
        return known

    async def _send(self, batch: _Batch) -> None:
        """Both at once: the topic serves the latest pods also while the index is down."""
        documents = [*batch.devices, *batch.attempts.values()]
        written, _ = await asyncio.gather(self._index.write(documents), self._topics.send(batch.outgoing))
        more = _Batch()
        for document, cause in written.refused:
            self._refuse(more, document, cause)
        for document in written.conflicts:
            if document.id in batch.told:
                await self._reconcile(more, batch.told[document.id], document.origin)
        if more.attempts or more.outgoing:
            await self._send(more)

    async def _reconcile(self, batch: _Batch, summary: AttemptSummarized, origin: Source | None) -> None:
        """The index holds a newer telling, of another worker or of a time before a restart: say what both say."""
        if (known := await self._indexed(summary)) is not None:
            self._tell_more(batch, known, summary, origin)

    def _refuse(self, batch: _Batch, document: Document, cause: str) -> None:
        logger.error("OpenSearch refuses document %s of %s: %.500s", document.id, document.index, cause)
        if document.origin is not None:
            self._set_aside(
                batch, document.origin, f"OpenSearch refuses the document {document.id}: {cause}", "document"
            )

    def _set_aside(self, batch: _Batch, source: Source, cause: str, kind: str) -> None:
        self._metrics.dead_letters.labels(kind).inc()
        batch.outgoing.append(dead_letter(source, cause, datetime.now(UTC)))

    def _count(self, summary: AttemptSummarized, new_lines: Sequence[Message]) -> None:
        self._metrics.attempts.labels(summary.status, str(summary.complete).lower()).inc()
        for message in new_lines:
            self._metrics.messages.labels(message.reason).inc()
