"""The worker's agent and writer on topics in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pipeline.metrics import WorkerMetrics
from pipeline.worker.agent import DecisionsAgent
from pipeline.worker.write_queue import WriterPolicy
from pipeline.worker.writer import Writer
from runtime.kafka.record import Record
from tests.support.fakes.topics import FakeTopics, stream


class Clock:
    """Seconds, as a test sets them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """An agent and a writer on topics that outlive them, as those of a real worker do."""

    def __init__(self, topics: Any, **how: Any) -> None:
        self.metrics = WorkerMetrics()
        self.clock = Clock()
        self.writer = Writer(topics, topics, self.metrics, WriterPolicy(linger_seconds=0, **how))
        self.decisions = DecisionsAgent(self.writer, self.metrics, clock=self.clock)

    async def read(self, *records: Record) -> None:
        await self.decisions.fold(stream(records))
        await self.writer.wait_until_drained()

    async def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.decisions.expire()
        await self.writer.wait_until_drained()


@asynccontextmanager
async def a_worker(topics: FakeTopics, **how: Any) -> AsyncIterator[Worker]:
    worker = Worker(topics, **how)
    running = asyncio.create_task(worker.writer.run())
    try:
        yield worker
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
