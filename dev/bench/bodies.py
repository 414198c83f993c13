"""The index writer without an index, as a process.

``python -m dev.bench.bodies SERVERS WARM_UP ATTEMPTS`` reads what a worker has published, makes the documents and their
bulk bodies, and commits. After ``WARM_UP`` attempts it prints ``warm`` and waits for a line on its input, which comes
when the worker has finished and does not disturb the measurement. Then it processes the attempts that were published
meanwhile and prints their CPU seconds.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dev.bench.in_process import BATCH_BYTES, BATCH_DOCUMENTS
from pipeline.index.batch_builder import DocumentBatchBuilder
from pipeline.index.index_writer import IndexWriter
from pipeline.index.process import READ, TopicsReader
from pipeline.index.state_audit import Ends, StateAudit
from pipeline.index.summary_parts import SummaryParts
from pipeline.metrics import IndexWriterMetrics
from pipeline.sinks.bulk import Document, WriteResult, encode_body, split_batches
from pipeline.sinks.msearch import Hits, Search
from runtime.kafka.consumer import TopicPartition, connected, create_consumer
from runtime.settings.kafka_connection import build_kafka_connection
from runtime.signals import collect_garbage_seldom
from schemas.codec.records import EncodedRecord

# As many as a batch of the index writer has by default.
_REQUESTS = 4


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
    collect_garbage_seldom()
    null_sink = NullSink()
    builder = DocumentBatchBuilder(SummaryParts(), _REQUESTS * BATCH_DOCUMENTS, _REQUESTS * BATCH_BYTES)
    audit = StateAudit(null_sink, null_sink, null_sink, lambda: datetime.now(UTC))
    reader = TopicsReader(builder, IndexWriter(null_sink, null_sink, IndexWriterMetrics()), audit)
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
