"""The worker's own agent and writer, and the index writer's batches, in this process: no Kafka and no index."""

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from statistics import median
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from engine.summaries.fold import summarize
from pipeline.index.batch_builder import DocumentBatchBuilder
from pipeline.index.process import READ
from pipeline.index.summary_parts import SummaryParts
from pipeline.metrics import WorkerMetrics
from pipeline.sinks.bulk import Document, encode_body, split_batches
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.write_queue import WriterPolicy
from pipeline.worker.writer import Writer
from runtime.kafka.producer import count_record_bytes
from runtime.kafka.record import Record, RecordPosition
from schemas.codec.records import EncodedRecord, Rejected, decode
from schemas.events import AttemptEvent, AttemptSummarized
from schemas.topics import DEAD_LETTERS, DECISIONS

BATCH_DOCUMENTS: Final = 1_000
BATCH_BYTES: Final = 4 * 1024 * 1024
SAMPLES: Final = 20
"""Attempts whose records are kept for their size."""
_ZSTD: Final = 4
"""Number of the codec in the attributes of a batch, by Kafka's protocol."""
_INDEXED: Final = frozenset(topic.name for topic in READ)


@dataclass(slots=True)
class Spent:
    """CPU milliseconds of each attempt, or of those that ran together, by step."""

    worker: list[float] = field(default_factory=list)
    documents: list[float] = field(default_factory=list)
    bodies: list[float] = field(default_factory=list)
    samples: list[list[EncodedRecord]] = field(default_factory=list)
    """Records of the first of them, those that the worker read and those that it published."""

    def count_bytes(self) -> tuple[float, float]:
        """Count the bytes on the topics of an attempt of the samples: keys, values and headers before compression; and
        the batches in the broker's log, as on a cluster with few attempts, where no two attempts share one."""
        plain = [sum(map(count_record_bytes, records)) for records in self.samples]
        return median(plain), median(map(_count_batch_bytes, self.samples))

    def sum_seconds(self) -> float:
        return sum(map(sum, (self.worker, self.documents, self.bodies))) / 1_000

    def __str__(self) -> str:
        names = ("worker", "documents", "bodies")
        return ", ".join(f"{name} {sum(getattr(self, name)) / len(self.worker):.2g}" for name in names)


class MemoryTopics:
    """Topics that hand over what is published, and hold nothing else."""

    def __init__(self) -> None:
        self._published: list[EncodedRecord] = []
        self._offsets = count()

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        self._published += outgoing
        return [RecordPosition(record.partition or 0, next(self._offsets)) for record in outgoing]

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None:
        """Read nothing: before this process no worker has published any history."""

    async def read_offsets(self, topic: str, partition: int, offsets: list[int]) -> list[Any]:
        raise RuntimeError(f"{topic}[{partition}]: the worker has forgotten what it published at {offsets}")

    def take(self) -> list[EncodedRecord]:
        """Take the records that were published since the last call."""
        taken, self._published = self._published, []
        return taken


class InProcess:
    """Runs worker and index writer on one attempt after the other and times both."""

    def __init__(self) -> None:
        self.spent = Spent()
        self._topics = MemoryTopics()
        metrics = WorkerMetrics()
        self._writer = Writer(self._topics, self._topics, metrics, WriterPolicy(linger_seconds=0))
        self._agent = DecisionsAgent(self._writer, metrics)
        self._documents = DocumentBatchBuilder(SummaryParts(), sys.maxsize, sys.maxsize)
        self._offsets = count()
        # One loop for all calls: the writer's locks belong to it.
        self._runner = asyncio.Runner()

    def reset_times(self) -> None:
        """Forget the times of the warm-up."""
        self.spent = Spent()

    def run_attempts(self, attempts: Iterable[Sequence[EncodedRecord]], together: int = 1) -> list[Document]:
        """Run worker and index writer on each attempt, which has these records, or on so many ``together``; return the
        documents."""
        return self._runner.run(self._run_attempts(attempts, together))

    async def _run_attempts(self, attempts: Iterable[Sequence[EncodedRecord]], together: int) -> list[Document]:
        writing = asyncio.create_task(self._writer.run())
        documents: list[Document] = []
        waiting = iter(attempts)
        while batch := list(islice(waiting, together)):
            records = list(chain.from_iterable(batch))
            began = time.process_time()
            await self._agent.fold(self._to_stream(DECISIONS.name, records))
            await self._writer.wait_until_drained()
            self.spent.worker.append((time.process_time() - began) * 1_000)
            published = self._topics.take()
            if not published or any(record.topic == DEAD_LETTERS.name for record in published):
                # An attempt that is never complete would never be published, and look fast.
                raise RuntimeError("the worker published no attempt, or rejected a record of it")
            if len(self.spent.samples) < SAMPLES:
                self.spent.samples.append([*records, *published])
            documents += self.index(published)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        return documents

    def index(self, published: Sequence[EncodedRecord]) -> list[Document]:
        """Make the documents of what a worker has published, and their bulk bodies."""
        began = time.process_time()
        for record in published:
            if record.topic in _INDEXED:
                self._documents.add(self._to_record(record.topic, record))
        documents = self._documents.take().documents
        built = time.process_time()
        # Joined and dropped: the bytes are what is measured, nothing is sent.
        for batch in split_batches(documents, BATCH_DOCUMENTS, BATCH_BYTES):
            encode_body(batch)
        self.spent.documents.append((built - began) * 1_000)
        self.spent.bodies.append((time.process_time() - built) * 1_000)
        return documents

    async def _to_stream(self, topic: str, records: Iterable[EncodedRecord]) -> AsyncIterator[Record]:
        for record in records:
            yield self._to_record(topic, record)

    def _to_record(self, topic: str, record: EncodedRecord) -> Record:
        return Record(topic, 0, next(self._offsets), record.key, record.value, record.headers)


def _count_batch_bytes(records: Sequence[EncodedRecord]) -> int:
    """Count the bytes of the batches of these records, which are about one pod: one batch for each topic."""
    batches: defaultdict[str, list[EncodedRecord]] = defaultdict(list)
    for record in records:
        batches[record.topic].append(record)
    return sum(len(_build_batch(batch)) for batch in batches.values())


def _build_batch(records: Sequence[EncodedRecord]) -> bytes:
    """Build the batch that the producer's client sends, and the broker keeps."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=_ZSTD, is_transactional=0, producer_id=1,
        producer_epoch=0, base_sequence=0, batch_size=sys.maxsize,
    )  # fmt: skip
    for offset, record in enumerate(records):
        builder.append(offset, 0, record.key, record.value, record.headers)
    return bytes(builder.build())


def decode_attempt(records: Iterable[EncodedRecord]) -> list[AttemptEvent]:
    """Decode the records of an attempt."""
    events = [decode(record.value, record.headers) for record in records]
    for event in events:
        if isinstance(event, Rejected) or not isinstance(event, AttemptEvent):
            raise RuntimeError(f"a record of the benchmark is no event of an attempt: {event}")
    return events  # type: ignore[return-value]


def summarize_attempt(records: Iterable[EncodedRecord]) -> AttemptSummarized:
    """Summarize the attempt that has these records."""
    return summarize(decode_attempt(records))
