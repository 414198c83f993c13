"""Bugs put on purpose into the process that writes documents into the index, where it meets Kafka and OpenSearch."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from aiokafka import AIOKafkaConsumer

from pipeline.sinks import bulk
from pipeline.sinks.bulk import BulkOutcome, BulkResult, Document, WriteResult
from pipeline.sinks.opensearch import OpenSearchSink
from schemas.index_family import Index
from schemas.indices import ATTEMPTS, DEVICES, NODE_STATES


def _acknowledge_before_writing() -> None:
    getmany = AIOKafkaConsumer.getmany

    async def commit(consumer: Any, *partitions: Any, **options: Any) -> Any:
        batches = await getmany(consumer, *partitions, **options)
        if batches:
            await consumer.commit({partition: records[-1].offset + 1 for partition, records in batches.items()})
        return batches

    setattr(AIOKafkaConsumer, "getmany", commit)


def _write(change: Callable[[Document], Document | None]) -> None:
    """Change every document before it is written; None loses it."""
    original = OpenSearchSink.write

    async def write(sink: OpenSearchSink, documents: Sequence[Document]) -> WriteResult:
        return await original(sink, [changed for document in documents if (changed := change(document)) is not None])

    setattr(OpenSearchSink, "write", write)


def _is_of(index: Index, document: Document) -> bool:
    return document.index.startswith(f"{index.alias}-")


def _randomize_ids() -> None:
    _write(lambda document: replace(document, id=uuid.uuid4().hex) if _is_of(ATTEMPTS, document) else document)


def _take_ids_from_offsets() -> None:
    def identify_by_offset(document: Document) -> Document:
        if not _is_of(DEVICES, document):
            return document
        (origin,) = document.origin
        return replace(document, id=f"{origin.topic}-{origin.partition}-{origin.offset}")

    _write(identify_by_offset)


def _index_by_the_time_of_writing() -> None:
    def name(index: Index, _started: datetime) -> str:
        now = datetime.now(UTC)
        return f"{index.alias}-{now:%Y.%m}.{now.second % 28 + 1:02}"

    setattr(Index, "name", name)


def _drop_version() -> None:
    original = bulk._encode_action

    def write_action(document: Document) -> bytes:
        if document.version is None:
            return original(document)
        return b'{"index":{"_index":"%s","_id":"%s"}}' % (document.index.encode(), document.id.encode())

    setattr(bulk, "_encode_action", write_action)


def _count_failed_request_as_written() -> None:
    async def write_once(sink: OpenSearchSink, batch: Sequence[Document]) -> list[BulkResult]:
        await sink._try("POST", "/_bulk", body=bulk.encode_body(batch))
        return [BulkResult(BulkOutcome.DONE)] * len(batch)

    setattr(OpenSearchSink, "_send_bulk", write_once)


def _lose_state() -> None:
    seen = count(1)
    _write(lambda document: None if _is_of(NODE_STATES, document) and next(seen) % 3 == 0 else document)


def _expire_state() -> None:
    """Write states only into an index of two days ago, which retention deletes before the verdicts'."""

    def make_old(document: Document) -> Document:
        if not _is_of(NODE_STATES, document):
            return document
        day = datetime.strptime(document.index.rpartition("-")[2], "%Y.%m.%d").replace(tzinfo=UTC)
        return replace(document, index=NODE_STATES.name(day - timedelta(days=2)))

    _write(make_old)


BUGS: Final[dict[str, Callable[[], None]]] = {
    "the index acknowledged before it is written": _acknowledge_before_writing,
    "random ids": _randomize_ids,
    "ids from offsets": _take_ids_from_offsets,
    "index by the time of writing": _index_by_the_time_of_writing,
    "no external version": _drop_version,
    "a failed request counts as written": _count_failed_request_as_written,
    "a state lost": _lose_state,
    "a state expired by retention": _expire_state,
}
