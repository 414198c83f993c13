"""A batch of records of node states: written into the index, or dead-lettered where that can't be done.

The offsets of a batch may be committed when ``write`` has returned. A batch that is written again changes nothing.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import orjson

from broker.record import Outgoing
from pipeline.dead_letters.codec import Source, dead_letter
from pipeline.node_states.metrics import Metrics
from pipeline.sinks.bulk import Document, source
from pipeline.sinks.bulk_result import WriteResult
from schemas.codec.records import Rejected, decode
from schemas.documents.node_states import node_state_document
from schemas.events import NodeStateChanged
from schemas.indices import NODE_STATES

logger = logging.getLogger(__name__)

USED_TWICE: Final = (
    "another state of the node has this epoch and revision: the scheduler counted a revision twice, "
    "or two schedulers share a name"
)


class StateIndex(Protocol):
    """The index: ``write`` returns when every document is written, in conflict, or refused for good."""

    async def write(self, documents: Sequence[Document]) -> WriteResult: ...
    async def stored(self, documents: Sequence[Document]) -> Sequence[dict[str, Any] | None]: ...


class DeadLetterTopic(Protocol):
    """``send`` returns when all records are acknowledged."""

    async def send(self, outgoing: Sequence[Outgoing]) -> None: ...


class StateWriter:
    def __init__(self, index: StateIndex, topics: DeadLetterTopic, metrics: Metrics) -> None:
        self._index, self._topics, self._metrics = index, topics, metrics

    async def write(self, records: Iterable[Source]) -> None:
        """Return when the index has the states of these records, and the dead letters have the other records."""
        documents = [document for record in records if (document := await self._document(record))]
        result = await self._index.write(documents)
        for document, cause in result.refused:
            cause = f"OpenSearch refuses the document {document.id}: {cause}"
            await self._dead_letter(document.origin, cause, "refused")
        await self._compare(result.conflicts)

    async def _document(self, record: Source) -> Document | None:
        # A compacted topic deletes a key by a record without a value.
        event = decode(record.value, record.headers) if record.value is not None else None
        if isinstance(event, Rejected):
            await self._dead_letter(record, str(event), "rejected")
        elif isinstance(event, NodeStateChanged):
            self._count("taken")
            return state_document(event, record)
        else:
            self._count("passed_over")
        return None

    async def _compare(self, conflicts: Sequence[Document]) -> None:
        """Dead-letter those under whose id the index has other content; the others are stored already."""
        if not conflicts:
            return
        for document, known in zip(conflicts, await self._index.stored(conflicts), strict=True):
            if known is not None and _content(known) != _content(orjson.loads(document.source)):
                await self._dead_letter(document.origin, f"{document.id}: {USED_TWICE}", "contradicting")

    async def _dead_letter(self, record: Source, cause: str, outcome: str) -> None:
        self._count(outcome)
        logger.warning("dead-lettered %s[%d]@%d: %.500s", record.topic, record.partition, record.offset, cause)
        await self._topics.send([dead_letter(record, cause, datetime.now(UTC))])

    def _count(self, outcome: str) -> None:
        self._metrics.records.labels(outcome).inc()


def state_document(event: NodeStateChanged, origin: Source) -> Document:
    """The document of a state, in the index of the day on which it was written."""
    # By the record's own time and not by the clock: read again, it is the same document. Without a version: a revision
    # never changes, so the index keeps the first document of an id.
    json = source(node_state_document(event, event.observed_at))
    return Document(NODE_STATES.name(event.observed_at), event.id, json, origin=origin)


def _content(document: dict[str, Any]) -> dict[str, Any]:
    """What is the same each time that a state is written: all but when that was."""
    return {name: value for name, value in document["state"].items() if name != "observed_at"}
