"""Bugs put on purpose into the process that writes documents into the index, where it meets Kafka and OpenSearch."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

from pipeline.sinks import bulk
from pipeline.sinks.bulk import Document
from pipeline.sinks.bulk_result import BulkOutcome, BulkResult, WriteResult
from pipeline.sinks.opensearch import OpenSearchSink
from schemas.index_family import Index
from schemas.indices import ATTEMPTS, DEVICES, NODE_STATES


def _acknowledged_before_it_is_written() -> None:
    getmany = AIOKafkaConsumer.getmany

    async def committing(consumer: Any, *partitions: Any, **how: Any) -> Any:
        found = await getmany(consumer, *partitions, **how)
        if found:
            await consumer.commit({partition: records[-1].offset + 1 for partition, records in found.items()})
        return found

    setattr(AIOKafkaConsumer, "getmany", committing)


def _write(change: Callable[[Document], Document | None]) -> None:
    """Every document is changed before it is written; None loses it."""
    write = OpenSearchSink.write

    async def writing(sink: OpenSearchSink, documents: Sequence[Document]) -> WriteResult:
        return await write(sink, [changed for document in documents if (changed := change(document)) is not None])

    setattr(OpenSearchSink, "write", writing)


def _is_of(index: Index, document: Document) -> bool:
    return document.index.startswith(f"{index.alias}-")


def _random_ids() -> None:
    _write(lambda document: replace(document, id=uuid.uuid4().hex) if _is_of(ATTEMPTS, document) else document)


def _ids_from_offsets() -> None:
    def by_offset(document: Document) -> Document:
        if not _is_of(DEVICES, document):
            return document
        (origin,) = document.origin
        return replace(document, id=f"{origin.topic}-{origin.partition}-{origin.offset}")

    _write(by_offset)


def _index_by_the_time_of_writing() -> None:
    def name(index: Index, _started: datetime) -> str:
        now = datetime.now(UTC)
        return f"{index.alias}-{now:%Y.%m}.{now.second % 28 + 1:02}"

    setattr(Index, "name", name)


def _no_version() -> None:
    action = bulk._action

    def without(document: Document) -> bytes:
        if document.version is None:
            return action(document)
        return b'{"index":{"_index":"%s","_id":"%s"}}' % (document.index.encode(), document.id.encode())

    setattr(bulk, "_action", without)


def _a_failed_request_counts_as_written() -> None:
    async def once(sink: OpenSearchSink, batch: Sequence[Document]) -> list[BulkResult]:
        await sink._try("POST", "/_bulk", body=bulk.body(batch))
        return [BulkResult(BulkOutcome.DONE)] * len(batch)

    setattr(OpenSearchSink, "_bulk", once)


def _a_state_lost() -> None:
    seen = count(1)
    _write(lambda document: None if _is_of(NODE_STATES, document) and next(seen) % 3 == 0 else document)


def _a_state_expired() -> None:
    """Not written again for two days: the only document is in an index that retention deletes before the verdicts'."""

    def of_long_ago(document: Document) -> Document:
        if not _is_of(NODE_STATES, document):
            return document
        day = datetime.strptime(document.index.rpartition("-")[2], "%Y.%m.%d").replace(tzinfo=UTC)
        return replace(document, index=NODE_STATES.name(day - timedelta(days=2)))

    _write(of_long_ago)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "the index acknowledged before it is written": _acknowledged_before_it_is_written,
    "random ids": _random_ids,
    "ids from offsets": _ids_from_offsets,
    "index by the time of writing": _index_by_the_time_of_writing,
    "no external version": _no_version,
    "a failed request counts as written": _a_failed_request_counts_as_written,
    "a state lost": _a_state_lost,
    "a state expired by retention": _a_state_expired,
}
