"""Writer of batches into the index, and of dead letters for records that the index can't hold.

The offsets of a batch may be committed when ``write`` has returned. A batch that is written again changes nothing.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import orjson

from pipeline.dead_letter import DeadLetterLog, to_dead_letter
from pipeline.index.batch_builder import Batch, DeadLetter
from pipeline.metrics import IndexWriterMetrics
from pipeline.sinks.bulk import Document, WriteResult
from runtime.kafka.broker_clock import trust_own_clock
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.codec.records import EncodedRecord
from schemas.indices import NODE_STATES
from schemas.topics import ATTEMPTS

logger = logging.getLogger(__name__)

_SPAN: Final = f"index {ATTEMPTS.name}"
USED_TWICE: Final = (
    "another state of the node has this epoch and revision: the scheduler counted a revision twice, "
    "or two schedulers share a name"
)


class DocumentIndex(Protocol):
    """The index: ``write`` returns when every document is written, in conflict, or refused for good."""

    async def write(self, documents: Sequence[Document]) -> WriteResult: ...
    async def read_stored(self, documents: Sequence[Document]) -> Sequence[dict[str, Any] | None]: ...


class DeadLetterTopic(Protocol):
    """``send`` returns when all records are acknowledged."""

    async def send(self, outgoing: Sequence[EncodedRecord]) -> object: ...


class IndexWriter:
    def __init__(
        self,
        index: DocumentIndex,
        topics: DeadLetterTopic,
        metrics: IndexWriterMetrics,
        clock: Callable[[], float] = time.time,
        wait_for_right_time: Callable[[], Awaitable[None]] = trust_own_clock,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        """Take the sinks. ``clock`` returns seconds since 1970; ``wait_for_right_time`` returns while that is right."""
        self._tracing = tracing
        self._index, self._topics, self._metrics, self._clock = index, topics, metrics, clock
        self._wait_for_right_time = wait_for_right_time
        self._dead_letter_log = DeadLetterLog(logger)

    async def write(self, batch: Batch) -> None:
        """Return when the index has the documents of the batch, and the dead letters have what it refuses."""
        # One each, of the same time: a bulk request holds attempts of many traces.
        spans = [self._tracing.begin(_SPAN, parent, kind="consumer") for parent in batch.traces]
        # By a wrong time the index would refuse good documents as those of an impossible day.
        await self._wait_for_right_time()
        result = await self._index.write(batch.documents)
        for span in spans:
            span.end()
        now = self._clock()
        for accepted_ms in batch.attempt_times_ms:
            # Clocks differ: a delay is never negative.
            self._metrics.delays.observe(max(now - accepted_ms / 1000, 0.0))
        refused = [
            DeadLetter(record, f"OpenSearch refuses the document {document.id}: {cause}")
            for document, cause in result.refused
            for record in document.origin
        ]
        contradicting = await self._find_contradicting(result.conflicts)
        await self._reject([*batch.rejected, *refused, *contradicting])
        for (topic, outcome), count in batch.outcomes.items():
            self._metrics.records.labels(topic, outcome).inc(count)
        self._metrics.given_up.inc(batch.given_up)
        self._count("refused", refused)
        self._count("contradicting", contradicting)

    async def _find_contradicting(self, conflicts: Iterable[Document]) -> list[DeadLetter]:
        """Find the states under whose id the index has other content."""
        # Any other conflict is a document that is stored already: the same one, or a later version of it.
        states = [document for document in conflicts if document.index.startswith(f"{NODE_STATES.alias}-")]
        stored = await self._index.read_stored(states) if states else []
        return [
            DeadLetter(record, f"{document.id}: {USED_TWICE}")
            for document, previous in zip(states, stored, strict=True)
            if previous is not None and _extract_content(previous) != _extract_content(orjson.loads(document.source))
            for record in document.origin
        ]

    async def _reject(self, rejected: Sequence[DeadLetter]) -> None:
        for record, cause in rejected:
            self._dead_letter_log.note(record, cause)
        if rejected:
            now = datetime.now(UTC)
            await self._topics.send([to_dead_letter(record, cause, now) for record, cause in rejected])

    def _count(self, outcome: str, rejected: Iterable[DeadLetter]) -> None:
        for record, _ in rejected:
            self._metrics.records.labels(record.topic, outcome).inc()


def _extract_content(document: dict[str, Any]) -> dict[str, Any]:
    """Extract the content that is equal each time a state is written: everything but the time."""
    return {name: value for name, value in document["state"].items() if name != "observed_at"}
