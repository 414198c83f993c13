"""From records to bulk bodies: step by step on one thread, and the index writer without an index as a process.

``python -m dev.bench.bodies SERVERS WARM_UP ATTEMPTS`` reads what a worker has published, makes the documents and their
bulk bodies, and commits. After ``WARM_UP`` attempts it prints ``warm`` and waits for a line on its input, which comes
when the worker has finished and does not disturb the measurement. Then it processes the attempts that were published
meanwhile and prints their CPU seconds.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from engine.summaries.messages import build_messages
from engine.summaries.trends import derive_contribution
from pipeline.index.batch_builder import DocumentBatchBuilder
from pipeline.index.index_writer import IndexWriter
from pipeline.index.metrics import Metrics
from pipeline.index.process import READ, TopicsReader
from pipeline.index.state_audit import Ends, StateAudit
from pipeline.index.summary_parts import SummaryParts
from pipeline.sinks.bulk import Document, WriteResult, encode_body, split_batches
from pipeline.sinks.msearch import Hits, Search
from pipeline.worker.batch import encode_attempt, encode_count, encode_messages, forward_devices
from pipeline.worker.open_attempts import ClosedAttempt, OpenAttempts
from runtime.kafka.consumer import TopicPartition, connected, create_consumer
from runtime.kafka.record import DecodedRecord, Record
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.codec.records import EncodedRecord, Rejected, decode
from schemas.events import AttemptSummarized, DevicesJudged
from schemas.topics import DECISIONS

BATCH_DOCUMENTS = 1_000
BATCH_BYTES = 4 * 1024 * 1024
# As many as a batch of the index writer has by default.
_REQUESTS = 4
_NOW: Final = datetime.now(UTC)


@dataclass(slots=True)
class Stages:
    """CPU seconds of each step."""

    read: float = 0.0
    fold: float = 0.0
    topics: float = 0.0
    documents: float = 0.0
    bodies: float = 0.0
    attempts: int = 0

    def sum_until_bodies(self) -> float:
        return self.read + self.fold + self.topics + self.documents + self.bodies

    def __str__(self) -> str:
        parts = [field.name for field in fields(self) if field.name != "attempts"]
        return ", ".join(f"{name} {getattr(self, name) / self.attempts * 1000:.2g}" for name in parts)


class InProcess:
    """Runs the steps of worker and index writer one after the other and times each."""

    def __init__(self) -> None:
        self.spent = Stages()
        self._open = OpenAttempts(30.0)
        self._builder = DocumentBatchBuilder(SummaryParts(), sys.maxsize, sys.maxsize)
        self._offsets = count()

    def reset_times(self) -> None:
        """Forget the times of the warm-up."""
        self.spent = Stages()

    def run_attempt(self, records: Sequence[EncodedRecord]) -> list[Document]:
        """Run the steps on one attempt and return its documents; ``records`` are all its records."""
        began = time.process_time()
        read = [self._to_record(DECISIONS.name, record) for record in records]
        events = [decode(record.value, record.headers) for record in read]
        decoded = time.process_time()
        ended = self._fold(read, events)
        folded = time.process_time()
        published = _list_published(ended)
        encoded = time.process_time()
        for record in published:
            self._builder.add(self._to_record(record.topic, record))
        documents = self._builder.take().documents
        built = time.process_time()
        # Joined and dropped: the bytes are what is measured, nothing is sent.
        for batch in split_batches(documents, BATCH_DOCUMENTS, BATCH_BYTES):
            encode_body(batch)
        joined = time.process_time()
        spent = self.spent
        spent.read += decoded - began
        spent.fold += folded - decoded
        spent.topics += encoded - folded
        spent.documents += built - encoded
        spent.bodies += joined - built
        spent.attempts += 1
        return documents

    def summarize(self, records: Sequence[EncodedRecord]) -> AttemptSummarized:
        """Summarize the attempt that has these records."""
        read = [self._to_record(DECISIONS.name, record) for record in records]
        return self._fold(read, [decode(record.value, record.headers) for record in read]).summary

    def _to_record(self, topic: str, record: EncodedRecord) -> Record:
        return Record(topic, 0, next(self._offsets), record.key, record.value, record.headers, 0, lambda: None)

    def _fold(self, records: Sequence[Record], events: Sequence[Any]) -> ClosedAttempt:
        ended = None
        for record, event in zip(records, events, strict=True):
            if isinstance(event, Rejected):
                raise RuntimeError(f"a record of the benchmark was rejected: {event}")
            rows = DecodedRecord(event, record) if isinstance(event, DevicesJudged) else None
            ended = self._open.add(event, record.offset, 0.0, _NOW, rows)
        if ended is None:
            # An attempt that is never complete would never be folded, and look fast.
            raise RuntimeError("the last record of an attempt did not complete it")
        return ended


def _list_published(ended: ClosedAttempt) -> list[EncodedRecord]:
    """List the records that the worker publishes of the first attempt of a pod, without its later history."""
    summary = ended.summary
    episode = {"episode": summary.attempt_id, "episode_started_at": summary.started_at}
    return [
        *map(forward_devices, ended.device_records),
        *encode_attempt(summary.model_copy(update=episode)),
        *encode_messages(build_messages(summary)),
        encode_count(summary, ended.recorded_at, derive_contribution(summary, None), None, 0),
    ]


class NullSink:
    """An index that only encodes its bulk bodies, and topics that drop their records; no I/O."""

    def __init__(self) -> None:
        self.attempts = 0

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        for batch in split_batches(documents, BATCH_DOCUMENTS, BATCH_BYTES):
            encode_body(batch)
        self.attempts += sum("-attempts-" in document.index for document in documents)
        return WriteResult()

    async def read_stored(self, documents: Sequence[Document]) -> Sequence[dict[str, Any] | None]:
        return [None for _ in documents]

    async def send(self, outgoing: Sequence[EncodedRecord]) -> None:
        """Send nothing, and refuse nothing."""

    async def search(self, searches: Sequence[Search]) -> list[Hits]:
        return [[] for _ in searches]

    async def fetch_ends(self) -> Ends:
        return {}

    async def fetch_committed(self, partitions: Sequence[TopicPartition]) -> Ends:
        return dict.fromkeys(partitions, 0)


async def measure_without_index(servers: str, warm_up: int, attempts: int) -> float:
    """Measure the CPU seconds of this process from the last body of the warm-up to the last body of all."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # as the index writer sets it
    null_sink = NullSink()
    builder = DocumentBatchBuilder(SummaryParts(), _REQUESTS * BATCH_DOCUMENTS, _REQUESTS * BATCH_BYTES)
    audit = StateAudit(null_sink, null_sink, null_sink, lambda: datetime.now(UTC))
    reader = TopicsReader(builder, IndexWriter(null_sink, null_sink, Metrics()), audit)
    async with connected(
        create_consumer(build_kafka_connection(servers), *(topic.name for topic in READ), group="bench-bodies")
    ) as consumer:
        while null_sink.attempts < warm_up:
            await reader.step(consumer)
        print("warm", flush=True)
        began = time.process_time()
        await asyncio.to_thread(sys.stdin.readline)
        while null_sink.attempts < warm_up + attempts:
            await reader.step(consumer)
    return time.process_time() - began


async def main(servers: str, warm_up: str, attempts: str) -> None:
    seconds = await measure_without_index(servers, int(warm_up), int(attempts))
    print(json.dumps({"cpu_seconds": seconds}), flush=True)
    # The result is printed, and leaving the group in order takes seconds.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
