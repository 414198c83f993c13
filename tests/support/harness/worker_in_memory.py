"""The worker's agent and writers on an index and topics in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker.record import Record
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.metrics import Metrics
from pipeline.worker.writer_pool import WriterPool
from pipeline.worker.writes import WriterPolicy
from tests.support.fakes.index_and_topics import FakeIndex, FakeTopics, stream


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """An agent and a writer on an index and topics that outlive them, as those of a real worker do."""

    def __init__(self, index: FakeIndex, topics: FakeTopics, **how: Any) -> None:
        self.metrics = Metrics()
        self.clock = Clock()
        self.writers = WriterPool(index, [topics, topics], self.metrics, WriterPolicy(linger_seconds=0, **how))
        self.decisions = DecisionsAgent(self.writers, self.metrics, clock=self.clock)

    async def read(self, *records: Record) -> None:
        await self.decisions.fold(stream(records))
        await self.writers.drained()

    async def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.decisions.expire()
        await self.writers.drained()


@asynccontextmanager
async def a_worker(index: FakeIndex, topics: FakeTopics, **how: Any) -> AsyncIterator[Worker]:
    worker = Worker(index, topics, **how)
    running = asyncio.create_task(worker.writers.run())
    try:
        yield worker
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
