"""The application without a network, whose topic a test writes while somebody watches."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import orjson

from api.memory.attempts_consumer import TopicState, take_record
from api.memory.change_log import ChangeLog
from api.memory.latest_attempts import LatestAttempts
from schemas.codec.chunking import split
from schemas.codec.records import encode
from schemas.events import AttemptRepeated, AttemptSummarized, build_pod_key
from tests.support.harness.api_app import Caller

Published = AttemptSummarized | AttemptRepeated


class WrittenTopic:
    """Writes attempts to the topic of an application, where its consumer would read them; two partitions."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._offsets = caller, [0, 0]
        self.changes.begin({0: 0, 1: 0}, {0, 1})
        caller.remember()

    @property
    def changes(self) -> ChangeLog:
        log: ChangeLog = self._caller.app.state.changes
        return log

    def publish(self, *attempts: Published, partition: int = 0) -> None:
        latest: LatestAttempts = self._caller.app.state.latest
        for attempt in attempts:
            for part in split(attempt) if isinstance(attempt, AttemptSummarized) else [attempt]:
                _, value, headers, *_ = encode(part)
                _, taken = take_record(value, headers, latest, TopicState(), time.time)
                self.changes.read(
                    partition, self._offsets[partition], taken, build_pod_key(attempt.cluster, attempt.pod)
                )
                self._offsets[partition] += 1

    async def watch(self, path: str, *attempts: Published, **headers: str) -> httpx.Response:
        """Return the answer to ``path``, while ``attempts`` are published one by one; the process ends after them."""
        answering = asyncio.ensure_future(self._caller.get(path, **headers))
        await wait_until(lambda: self.changes.subscribers > 0 or answering.done())
        for attempt in attempts:
            self.publish(attempt)
            await asyncio.sleep(0)
        await wait_until(lambda: not any(subscription.waiting for subscription in self.changes.list_subscriptions()))
        self.changes.close()
        try:
            return await answering
        finally:
            self.changes.is_closed = False

    async def read_events(self, path: str, *attempts: Published, **headers: str) -> list[dict[str, Any]]:
        return parse_lines(await self.watch(path, *attempts, **headers))


def parse_lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == httpx.codes.OK, answer.text
    return [orjson.loads(line) for line in answer.text.splitlines()]


def list_types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - nothing signals when it holds
            await asyncio.sleep(0)
