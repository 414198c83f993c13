"""Writes what the agent hands over, in batches, to the index and the topics; then the records are acknowledged.

While one batch is under way the next one collects, so that a busy worker writes large batches and an idle one writes at
once. An attempt's records are acknowledged only when its minute is counted too: a worker that is killed in between
reads them again, and the minute stays right.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from broker.record import Outgoing
from pipeline.sinks.bulk import Document
from pipeline.sinks.bulk_result import WriteResult
from pipeline.worker.batch import WriteBatch
from pipeline.worker.batch_builder import BatchBuilder
from pipeline.worker.byte_budget import ByteBudget
from pipeline.worker.metrics import Metrics
from pipeline.worker.stored_attempts import ReadableIndex
from pipeline.worker.writes import EarlyDevices, OnWritten, QueuedWrite, WriterPolicy


class DocumentIndex(ReadableIndex, Protocol):
    """The index: ``write`` returns when every document is written, in conflict, or refused for good."""

    async def write(self, documents: Sequence[Document]) -> WriteResult: ...
    def forget(self) -> None: ...


class TopicPublisher(Protocol):
    """The topics: ``send`` returns when all records are acknowledged."""

    async def send(self, outgoing: Sequence[Outgoing]) -> None: ...


class Writer:
    """The writer of some partitions. ``put`` may be called by any coroutine, ``run`` by one."""

    def __init__(
        self,
        index: DocumentIndex,
        topics: TopicPublisher,
        metrics: Metrics,
        budget: ByteBudget,
        policy: WriterPolicy,
    ) -> None:
        self._index = index
        self._topics = topics
        self._budget = budget
        self._policy = policy
        self._builder = BatchBuilder(index, metrics, policy)
        self._queue: list[QueuedWrite] = []
        self._queued_bytes = 0
        self._is_writing = False
        self._changed = asyncio.Condition()
        self._unacknowledged: list[OnWritten] = []
        """Of writes that are done, but for the counts of their minutes."""
        self._counted_at = 0.0
        self._drainers = 0

    @property
    def cached_summaries(self) -> int:
        return self._builder.cached_summaries

    async def put(self, write: QueuedWrite) -> None:
        """Queue a write; waits until the budget allows it."""
        # Before it is queued: this is where reading waits while the stores are slower than Kafka.
        await self._budget.acquire(write.size)
        self._queue.append(write)
        self._queued_bytes += write.size
        async with self._changed:
            self._changed.notify_all()

    def forget(self) -> None:
        """Drop all caches: partitions have moved, and another worker may write their attempts now."""
        self._builder.clear()
        # Their next owner reads these records again: an acknowledgement would be of a partition that is not ours any
        # more.
        self._unacknowledged.clear()
        self._index.forget()

    async def drained(self) -> None:
        """Return when everything that was put is written and counted."""
        async with self._changed:
            self._drainers += 1
            self._changed.notify_all()
            try:
                await self._changed.wait_for(
                    lambda: not self._queue and not self._is_writing and not self._unacknowledged
                )
            finally:
                self._drainers -= 1

    async def run(self) -> None:
        """Write until cancelled. Raises ``NotProvisionedError``, which waiting does not cure."""
        while True:
            writes = await self._take()
            await self._write(await self._builder.build(writes))
            self._unacknowledged += [write.on_written for write in writes if not isinstance(write, EarlyDevices)]
            if self._must_count():
                await self._count_minutes()
            async with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    async def _take(self) -> list[QueuedWrite]:
        await self._work_to_do()
        # Readers that wait for the budget can add nothing to this batch: lingering would only hold them up.
        if self._queue and not self._budget.has_waiters:
            await asyncio.sleep(self._policy.linger_seconds)
        async with self._changed:
            taken, size, self._queue, self._queued_bytes = self._queue, self._queued_bytes, [], 0
            self._is_writing = True
        # On taking and not after writing: the next batch collects while this one is written.
        await self._budget.release(size)
        return taken

    async def _work_to_do(self) -> None:
        """Return when something is queued, or when minutes have waited long enough to be counted."""
        due_in = self._counted_at + self._policy.count_seconds - time.monotonic() if self._unacknowledged else None
        with suppress(TimeoutError):
            async with asyncio.timeout(due_in), self._changed:
                await self._changed.wait_for(lambda: bool(self._queue or (self._drainers and self._unacknowledged)))

    async def _write(self, batch: WriteBatch) -> None:
        """Write the batch, and what follows from the index's answer to it, until nothing follows."""
        while not batch.is_empty:
            # Side by side: the API answers about the latest pods from the topic, also while the index is down.
            result, _ = await asyncio.gather(
                self._index.write(list(batch.documents())), self._topics.send(batch.outgoing)
            )
            # Before the acknowledgement: a dead letter or a merged summary that is not written yet would be lost with a
            # crash.
            batch = await self._builder.follow_up(batch, result)

    def _must_count(self) -> bool:
        # At the end of reading no later batch comes that would count.
        is_last = self._drainers > 0 and not self._queue
        is_due = time.monotonic() >= self._counted_at + self._policy.count_seconds
        return bool(self._unacknowledged) and (is_last or is_due)

    async def _count_minutes(self) -> None:
        """Write the counts of the minutes that changed; then acknowledge the records of their attempts."""
        # Taken before the write: `forget` may clear the list meanwhile. Records of a partition that was revoked since
        # are not acknowledged all the same, see `_Partition.complete` of the agent.
        written, self._unacknowledged = self._unacknowledged, []
        documents, outgoing = self._builder.take_minutes()
        await asyncio.gather(self._index.write(documents), self._topics.send(outgoing))
        self._counted_at = time.monotonic()
        for on_written in written:
            # Only now: a crash before this line reads the records again, and the same documents replace themselves.
            on_written()
