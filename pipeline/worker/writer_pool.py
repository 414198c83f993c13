"""The writers of a worker, side by side: while the index takes a batch of one, the other makes its next one."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pipeline.worker.byte_budget import ByteBudget
from pipeline.worker.metrics import Metrics
from pipeline.worker.writer import DocumentIndex, TopicPublisher, Writer
from pipeline.worker.writes import WriterPolicy
from process.signals import first_of


class WriterPool:
    """As many as there are ``topics``, with equal shares of what ``policy`` allows to be remembered.

    A partition is always written by the same one, so no two of them remember anything of one attempt or pod.
    """

    def __init__(
        self, index: DocumentIndex, topics: Sequence[TopicPublisher], metrics: Metrics, policy: WriterPolicy
    ) -> None:
        self._budget = ByteBudget(policy.queue_bytes)
        share = replace(
            policy,
            remembered_bytes=policy.remembered_bytes // len(topics),
            compared_bytes=policy.compared_bytes // len(topics),
        )
        self._writers = [Writer(index, each, metrics, self._budget, share) for each in topics]

    @property
    def queued_bytes(self) -> int:
        return self._budget.used_bytes

    @property
    def cached_summaries(self) -> int:
        return sum(writer.cached_summaries for writer in self._writers)

    def of(self, partition: int) -> Writer:
        return self._writers[partition % len(self._writers)]

    def forget(self) -> None:
        """Partitions have moved: what was remembered of their attempts may be out of date when they come back."""
        for each in self._writers:
            each.forget()

    async def drained(self) -> None:
        """Return when all that was handed over is written."""
        await asyncio.gather(*(each.drained() for each in self._writers))

    async def run(self) -> None:
        """Write for ever. Raises what can't be waited for: ``NotProvisionedError``."""
        await first_of(*(each.run() for each in self._writers))
