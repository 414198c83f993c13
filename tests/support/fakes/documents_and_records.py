"""An index in memory that keeps what OpenSearch promises of a bulk request, and records as a consumer gives them."""

from collections.abc import Sequence
from typing import Any

import orjson

from pipeline.sinks.bulk import Document, WriteResult
from runtime.kafka.record import Record
from schemas.codec.records import encode
from schemas.events import Event
from schemas.topics import ATTEMPTS


class TopicLog:
    """One partition. ``now_ms`` is Kafka's time of what is appended next."""

    def __init__(self, topic: str = ATTEMPTS.name, partition: int = 0) -> None:
        self.topic, self.partition = topic, partition
        self.records: list[Record] = []
        self.now_ms = 1_795_230_000_000

    def append(self, *events: Event) -> None:
        for event in events:
            key, value, headers, *_ = encode(event)
            self.append_bytes(key, value, headers)

    def append_bytes(self, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()) -> Record:
        position = self.topic, self.partition, len(self.records)
        self.records.append(Record(*position, key, value, headers, self.now_ms))
        return self.records[-1]


class DocumentsByVersion:
    """Keeps the first document of an id, of versions the greatest; refuses the ids in ``refused``."""

    def __init__(self, *refused: str) -> None:
        self.documents: dict[tuple[str, str], Any] = {}
        """By index and id."""
        self.versions: dict[tuple[str, str], int | None] = {}
        self.writes: list[int] = []
        """How many documents each request had."""
        self._refused = refused

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        result = WriteResult()
        self.writes.append(len(documents))
        for document in documents:
            key = document.index, document.id
            if document.id in self._refused:
                result.refused.append((document, "400 because"))
            elif key in self.documents and (
                document.version is None or document.version < (self.versions[key] or 0) + document.keeps_first
            ):
                result.conflicts.append(document)
            else:
                self.documents[key] = orjson.loads(document.source)
                self.versions[key] = document.version
        return result

    async def read_stored(self, documents: Sequence[Document]) -> list[dict[str, Any] | None]:
        return [self.documents.get((document.index, document.id)) for document in documents]
