"""From records to bulk bodies: step by step on one thread, and through Faust in a process of its own.

``python -m bench.bodies SERVERS WARM_UP ATTEMPTS`` is the worker without an index: it reads, folds, makes the documents
and their bulk bodies, and acknowledges. After ``WARM_UP`` attempts it prints ``warm`` and waits for a line on its
input, which comes when the sender has finished and does not disturb the measurement. Then it processes the attempts
that were sent meanwhile and prints their CPU seconds.
"""

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from broker.record import Outgoing
from broker.record import Record as ReadRecord
from pipeline.settings import Settings
from pipeline.sinks.bulk import Document, batches, body
from pipeline.sinks.bulk_result import WriteResult
from pipeline.worker import attempt_documents
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.faust_app import create_app
from pipeline.worker.metrics import Metrics
from pipeline.worker.open_attempts import ClosedAttempt, DeviceRecord, OpenAttempts
from pipeline.worker.process import WRITERS
from pipeline.worker.writer_pool import WriterPool
from pipeline.worker.writes import WriterPolicy
from process.settings import read
from schemas.codec.records import EncodedRecord, Rejected, decode
from schemas.documents.attempts import EpisodeRef
from schemas.events import DevicesJudged
from summaries.messages import messages
from summaries.retries import digests_of

BATCH_DOCUMENTS = 1_000
BATCH_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Stages:
    """CPU seconds of each step."""

    read: float = 0.0
    fold: float = 0.0
    documents: float = 0.0
    bodies: float = 0.0
    topics: float = 0.0
    attempts: int = 0

    def until_bodies(self) -> float:
        return self.read + self.fold + self.documents + self.bodies

    def __str__(self) -> str:
        parts = [each.name for each in fields(self) if each.name != "attempts"]
        return ", ".join(f"{name} {getattr(self, name) / self.attempts * 1000:.2g}" for name in parts)


class InProcess:
    """Runs the steps of the worker one after the other and times each."""

    def __init__(self) -> None:
        self.spent = Stages()
        self._open = OpenAttempts(30.0)
        self._offset = 0

    def reset_times(self) -> None:
        """Forget the times of the warm-up."""
        self.spent = Stages()

    def attempt(self, records: Sequence[EncodedRecord]) -> list[Document]:
        """The documents of one attempt; ``records`` are all its records."""
        began = time.process_time()
        events = [decode(each.value, each.headers) for each in records]
        read = time.process_time()
        ended = self._fold(records, events)
        folded = time.process_time()
        documents = _documents(ended)
        made = time.process_time()
        # Joined and dropped: the bytes are what is measured, nothing is sent.
        for batch in batches(documents, BATCH_DOCUMENTS, BATCH_BYTES):
            body(batch)
        joined = time.process_time()
        list(attempt_documents.attempt_records(ended.summary, messages(ended.summary)))
        encoded = time.process_time()
        spent = self.spent
        spent.read += read - began
        spent.fold += folded - read
        spent.documents += made - folded
        spent.bodies += joined - made
        spent.topics += encoded - joined
        spent.attempts += 1
        return documents

    def _fold(self, records: Sequence[EncodedRecord], events: Iterable[Any]) -> ClosedAttempt:
        ended = None
        for record, event in zip(records, events, strict=True):
            if isinstance(event, Rejected):
                raise RuntimeError(f"a record of the benchmark was rejected: {event}")
            rows = DeviceRecord(event, record.value) if isinstance(event, DevicesJudged) else None
            ended = self._open.add(event, self._offset, 0.0, rows)
            self._offset += 1
        if ended is None:
            # An attempt that is never complete would never be folded, and look fast.
            raise RuntimeError("the last record of an attempt did not complete it")
        return ended


def _documents(ended: ClosedAttempt) -> list[Document]:
    """The documents that the writer makes of the first attempt of a pod."""
    summary = ended.summary
    digests = digests_of(summary)
    episode = EpisodeRef(summary.attempt_id, summary.started_at)
    return [
        *map(attempt_documents.device_document, ended.device_records),
        attempt_documents.summary_document(summary, messages(summary), episode, digests),
    ]


class NullSink:
    """An index that only encodes its bulk bodies, and topics that drop their records; no I/O."""

    def __init__(self) -> None:
        self.attempts = 0

    async def write(self, documents: Sequence[Document]) -> WriteResult:
        for batch in batches(documents, BATCH_DOCUMENTS, BATCH_BYTES):
            body(batch)
        self.attempts += sum("-attempts-" in each.index for each in documents)
        return WriteResult()

    async def fetch(self, *_: str) -> dict[str, object] | None:
        return None

    async def search(self, searches: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[list[dict[str, Any]]]:
        return [[] for _ in searches]

    def forget(self) -> None:
        """Does nothing, because nothing is kept."""

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Does nothing: the records were encoded before."""


async def through_faust(servers: str, warm_up: int, attempts: int, folder: Path) -> float:
    """CPU seconds of this process from the last body of the warm-up to the last body of all."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # as the worker sets it
    chosen = read(
        Settings, kafka_bootstrap_servers=servers, opensearch_url="http://127.0.0.1:1", consumer_group="bench-bodies"
    )
    null_sink = NullSink()
    topics = [null_sink] * WRITERS
    writers = WriterPool(null_sink, topics, metrics := Metrics(), WriterPolicy(queue_bytes=chosen.queue_bytes))
    decisions = DecisionsAgent(writers, metrics)
    may_continue = asyncio.Event()
    may_continue.set()

    async def when_allowed(records: AsyncIterator[ReadRecord]) -> AsyncIterator[ReadRecord]:
        async for record in records:
            await may_continue.wait()
            yield record

    async def fold(records: AsyncIterator[ReadRecord]) -> None:
        await decisions.fold(when_allowed(records))

    app = create_app(chosen, folder, fold, decisions.forget)
    writing = asyncio.create_task(writers.run())
    await app.start()
    await _made(null_sink, warm_up, writing)
    may_continue.clear()
    print("warm", file=sys.__stdout__, flush=True)
    began = time.process_time()
    await asyncio.to_thread(sys.stdin.readline)
    may_continue.set()
    await _made(null_sink, warm_up + attempts, writing)
    return time.process_time() - began


async def _made(null_sink: NullSink, attempts: int, writing: asyncio.Task[None]) -> None:
    while null_sink.attempts < attempts:
        if writing.done():
            writing.result()
        await asyncio.sleep(0.01)


async def main(servers: str, warm_up: str, attempts: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        seconds = await through_faust(servers, int(warm_up), int(attempts), Path(folder))
    print(json.dumps({"cpu_seconds": seconds}), file=sys.__stdout__, flush=True)
    # The result is printed, and an orderly stop of Faust takes seconds.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
