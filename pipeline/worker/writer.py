"""Writer: publishes what the agent hands over, in batches, and then acknowledges the records.

While one batch is under way the next one collects, so that a busy worker sends large batches and an idle one sends at
once. The order within a batch: the records of attempts, then the histories of their pods, which name the positions of
those records, then the acknowledgement. After a crash in between the worker publishes the same records again, under
the same ids.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from pipeline.metrics import WorkerMetrics
from pipeline.worker.batch_builder import BatchBuilder
from pipeline.worker.published import PodHistories, PublishedSummaries, ReadableTopics
from pipeline.worker.write_queue import ByteBudget, EarlyDevices, QueuedWrite, WriterPolicy
from runtime.kafka.record import RecordPosition
from schemas.codec.records import EncodedRecord, encode
from schemas.topics import POD_HISTORIES


class TopicPublisher(Protocol):
    """The topics: ``send`` returns when all records are acknowledged."""

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]: ...


class Writer:
    """``put`` may be called by any coroutine, ``run`` by one."""

    def __init__(
        self, topics: TopicPublisher, published: ReadableTopics, metrics: WorkerMetrics, policy: WriterPolicy
    ) -> None:
        self._topics = topics
        self._budget = ByteBudget(policy.queue_bytes)
        self._linger_seconds = policy.linger_seconds
        self._histories = PodHistories(published)
        self._summaries = PublishedSummaries(published, policy.summary_cache_bytes)
        self._builder = BatchBuilder(self._histories, self._summaries, metrics, policy.node_pools)
        self._queue: list[tuple[int, QueuedWrite]] = []
        self._queued_bytes = 0
        self._is_writing = False
        self._changed = asyncio.Condition()
        self.generation = 0
        """Counts the assignments of partitions."""

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait to be published."""
        return self._budget.used_bytes

    @property
    def cached_summaries(self) -> int:
        return len(self._summaries)

    @property
    def pod_histories(self) -> int:
        return len(self._histories)

    async def put(self, write: QueuedWrite, generation: int) -> None:
        """Queue a write, of records that were read in that generation; waits until the budget allows it."""
        # Before it is queued: this is where reading waits while the broker is slow.
        await self._budget.acquire(write.size)
        self._queue.append((generation, write))
        self._queued_bytes += write.size
        async with self._changed:
            self._changed.notify_all()

    def forget(self) -> None:
        """Begin a new generation: partitions are being reassigned, and another worker may publish their attempts.

        What was put before is neither published nor acknowledged any more: its next owner reads the records again.
        """
        self.generation += 1
        self._histories.clear()
        self._summaries.clear()

    async def wait_until_idle(self) -> None:
        """Return when nothing is being published."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_writing)

    async def wait_until_drained(self) -> None:
        """Return when everything that was put is published."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._queue and not self._is_writing)

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self._publish(await self._take())
            async with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    async def _take(self) -> list[QueuedWrite]:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._queue))
        # Readers that wait for the budget can add nothing to this batch: lingering would only hold them up.
        if not self._budget.has_waiters:
            await asyncio.sleep(self._linger_seconds)
        async with self._changed:
            taken, size, self._queue, self._queued_bytes = self._queue, self._queued_bytes, [], 0
            self._is_writing = True
        # On taking and not after publishing: the next batch collects while this one is sent.
        await self._budget.release(size)
        return [write for generation, write in taken if generation == self.generation]

    async def _publish(self, writes: Sequence[QueuedWrite]) -> None:
        generation = self.generation
        batch = await self._builder.build(writes)
        # Checked before each step: what the partitions' next owner does must not be overtaken.
        if generation != self.generation:
            return
        places = await self._topics.send(batch.outgoing)
        if generation != self.generation:
            return
        histories = [
            (key, history, encode(history, POD_HISTORIES.name, key.partition))
            for key, history in batch.locate_summaries(places)
        ]
        positions = await self._topics.send([record for _, _, record in histories])
        if generation != self.generation:
            return
        for (key, history, record), position in zip(histories, positions, strict=True):
            self._histories.put(key, history, record.value, position.offset)
        # Not while the batch is built: what is in the cache counts as published.
        for summary in batch.list_full_summaries():
            self._summaries.put(summary)
        for write in writes:
            if not isinstance(write, EarlyDevices):
                # Only now: a crash before this line reads the records again.
                write.on_written()
