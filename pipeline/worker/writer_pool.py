"""The writers of a worker, side by side: while the index processes a batch of one, the other builds its next one."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pipeline.worker.byte_budget import ByteBudget
from pipeline.worker.metrics import Metrics
from pipeline.worker.writer import DocumentIndex, TopicPublisher, Writer
from pipeline.worker.writes import WriterPolicy
from process.signals import first_of


class WriterPool:
    """A writer for each of ``topics``. They share the budget of ``policy``, and each has an equal part of its caches.

    A partition always has the same writer, so everything about an attempt or a pod is in the caches of one writer.
    """

    def __init__(
        self, index: DocumentIndex, topics: Sequence[TopicPublisher], metrics: Metrics, policy: WriterPolicy
    ) -> None:
        # One budget: how much each writer has to do depends on its partitions, which are not equally busy.
        self._budget = ByteBudget(policy.queue_bytes)
        share = replace(
            policy,
            summary_cache_bytes=policy.summary_cache_bytes // len(topics),
            compared_bytes=policy.compared_bytes // len(topics),
        )
        self._writers = [Writer(index, publisher, metrics, self._budget, share) for publisher in topics]

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait to be written."""
        return self._budget.used_bytes

    @property
    def cached_summaries(self) -> int:
        return sum(writer.cached_summaries for writer in self._writers)

    def of(self, partition: int) -> Writer:
        """The writer of a partition."""
        return self._writers[partition % len(self._writers)]

    def forget(self) -> None:
        """Drop all caches: partitions have moved, and another worker may write their attempts now."""
        for writer in self._writers:
            writer.forget()

    async def drained(self) -> None:
        """Return when everything that was put is written and counted."""
        await asyncio.gather(*(writer.drained() for writer in self._writers))

    async def run(self) -> None:
        """Write until cancelled. Raises ``NotProvisionedError``, which waiting does not cure."""
        # An error of one ends both: the process ends with it, and neither may continue to acknowledge.
        await first_of(*(writer.run() for writer in self._writers))
