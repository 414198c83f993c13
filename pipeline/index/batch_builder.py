"""Records as a batch of documents, and how far their partitions may be committed once it is written. No I/O."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from pipeline.index.documents import (
    make_documents,
    make_pod_state_document,
    make_state_document_after,
    make_summary_document,
)
from pipeline.index.summary_parts import Partition, SummaryPart, SummaryParts
from pipeline.sinks.bulk import Document
from runtime.kafka.record import DecodedRecord, Record
from schemas.codec.chunking import join
from schemas.codec.records import Rejected, decode_value, find_event_type
from schemas.codec.trace_context import Trace, trace_of
from schemas.documents.devices import DevicesJudgedHead
from schemas.documents.pod_states import derive_state_after_attempt
from schemas.events import AttemptRepeated, AttemptSummarized, DevicesJudged, Event

Key = TypeVar("Key", str, tuple[str, str])


class DeadLetter(NamedTuple):
    """A record that the index can't hold, and why."""

    record: Record
    cause: str


@dataclass(slots=True)
class Batch:
    """Documents and dead letters that are written together."""

    lasting: list[Document] = field(default_factory=list)
    """Documents that never change once they are written."""
    versioned: dict[tuple[str, str], Document] = field(default_factory=dict)
    """Documents by index and id: of several versions the index needs only the greatest."""
    pod_states: dict[str, Document] = field(default_factory=dict)
    """Documents by id: of several states of a pod the index needs only the latest."""
    verdicts: list[DevicesJudgedHead] = field(default_factory=list)
    """Verdicts whose documents are in the batch: they refer to node states."""
    rejected: list[DeadLetter] = field(default_factory=list)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of records, by topic and outcome."""
    committable: dict[Partition, int] = field(default_factory=dict)
    """The offset behind the last record of each partition, or the offset of a part whose summary is still
    incomplete."""
    size: int = 0
    """Bytes of the documents."""
    oldest_ms: int | None = None
    """The earliest of Kafka's times of its records, in milliseconds since 1970."""
    attempt_times_ms: list[int] = field(default_factory=list)
    """Kafka's time of the record of each attempt among the documents, in milliseconds since 1970."""
    traces: list[Trace] = field(default_factory=list)
    """The traces of those attempts among the documents that are traced."""
    given_up: int = 0
    """Summaries that will not be written, because records of them are missing."""

    @property
    def documents(self) -> list[Document]:
        return [*self.lasting, *self.versioned.values(), *self.pod_states.values()]

    def add(self, document: Document) -> None:
        if document.version is None:
            self.lasting.append(document)
            self.size += document.size
            return
        self._put(self.versioned, (document.index, document.id), document)

    def add_pod_state(self, document: Document) -> None:
        self._put(self.pod_states, document.id, document)

    def _put(self, documents: dict[Key, Document], key: Key, document: Document) -> None:
        """Add the document, unless the index keeps the one that the batch has."""
        stored = documents.get(key)
        if stored is None or document.supersedes(stored):
            documents[key] = document
            self.size += document.size - (stored.size if stored else 0)


class DocumentBatchBuilder:
    """Takes records one by one; ``take`` gives what has gathered."""

    def __init__(self, parts: SummaryParts, max_documents: int, max_bytes: int) -> None:
        self._parts = parts
        self._max_documents, self._max_bytes = max_documents, max_bytes
        self._batch = Batch()

    @property
    def is_empty(self) -> bool:
        """True if no record was added since the last batch."""
        return not self._batch.committable

    @property
    def is_full(self) -> bool:
        batch = self._batch
        # An attempt is one document more, of its pod's state: pods are counted by themselves.
        documents = max(len(batch.lasting) + len(batch.versioned), len(batch.pod_states))
        return documents >= self._max_documents or batch.size >= self._max_bytes

    @property
    def oldest_ms(self) -> int | None:
        """Kafka's time of the oldest record since the last batch, in milliseconds since 1970; None without any."""
        return self._batch.oldest_ms

    def add(self, record: Record) -> None:
        batch = self._batch
        batch.oldest_ms = min(record.timestamp, batch.oldest_ms or record.timestamp)
        partition = record.topic, record.partition
        batch.outcomes[record.topic, self._process(partition, record)] += 1
        batch.committable[partition] = record.offset + 1
        # After the record itself: it may be the part that was missing.
        self._parts.advance(partition, record.timestamp)

    def take(self) -> Batch:
        """Take the batch; the next record begins another."""
        batch, self._batch = self._batch, Batch()
        for partition, behind_last in batch.committable.items():
            first = self._parts.find_first_offset(partition)
            batch.committable[partition] = behind_last if first is None else min(first, behind_last)
        batch.given_up = self._parts.take_given_up()
        return batch

    def forget(self) -> None:
        """Drop the batch, because partitions have moved: this process or another reads its records again."""
        self._parts.clear()
        self._batch = Batch()

    def _process(self, partition: Partition, record: Record) -> str:
        # A compacted topic deletes a key by a record without a value.
        if record.value is None:
            return "passed_over"
        event = _decode(record.value, record.headers)
        if isinstance(event, Rejected):
            return self._reject([record], str(event))
        if isinstance(event, AttemptSummarized):
            return self._add_part(partition, DecodedRecord(event, record))
        if isinstance(event, DevicesJudgedHead):
            self._batch.verdicts.append(event)
        if isinstance(event, AttemptRepeated):
            self._note_attempt(record)
        read = DecodedRecord[Event](event, record)
        if state := make_state_document_after(read):
            self._batch.add_pod_state(state)
        documents = make_documents(read)
        if documents is None:
            return "taken" if state else "passed_over"
        for document in documents:
            self._batch.add(document)
        return "taken"

    def _add_part(self, partition: Partition, part: SummaryPart) -> str:
        parts = self._parts.add(partition, part)
        if parts is None:
            return "taken"
        records = [chunk.record for chunk in parts]
        try:
            summary = join([chunk.event for chunk in parts])
        except ValueError as error:
            return self._reject(records, str(error))
        self._batch.add(make_summary_document(summary, records))
        self._batch.add_pod_state(
            make_pod_state_document(derive_state_after_attempt(summary), summary.started_at, records)
        )
        # The last record that came completed it.
        self._note_attempt(part.record)
        return "taken"

    def _note_attempt(self, record: Record) -> None:
        self._batch.attempt_times_ms.append(record.timestamp)
        if trace := trace_of(record.headers):
            self._batch.traces.append(trace)

    def _reject(self, records: Iterable[Record], cause: str) -> str:
        self._batch.rejected += [DeadLetter(record, cause) for record in records]
        return "rejected"


def _decode(value: bytes, headers: Sequence[tuple[str, bytes]]) -> Event | Rejected:
    kind = find_event_type(headers)
    if isinstance(kind, Rejected):
        return kind
    # The worker has checked the columns before it forwarded the record; the document holds them as they are.
    return decode_value(DevicesJudgedHead if kind is DevicesJudged else kind, value)
