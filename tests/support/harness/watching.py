"""The application without a network, whose topic a test writes while somebody watches."""

import asyncio
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import httpx
import orjson

from api.memory.attempts_consumer import take_record
from api.memory.change_log import ChangeLog, Subscription
from api.memory.latest_attempts import LatestAttempts
from api.memory.pods_consumer import PodsTopic
from api.memory.topic_follower import TopicState
from api.memory.wait_log import OF_ATTEMPTS, WaitLog
from schemas.codec.chunking import split
from schemas.codec.records import encode
from schemas.events import AttemptRepeated, AttemptSummarized, PodObserved, WorkloadObserved, build_pod_key
from tests.support.harness.api_app import SETTINGS, Caller

Observed = PodObserved | WorkloadObserved
Published = AttemptSummarized | AttemptRepeated | Observed


class WrittenTopic:
    """Writes attempts and observations to the topics of an application, where its consumers would read them.

    Each topic has two partitions.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller, self._offsets, self._pod_offsets = caller, [0, 0], [0, 0]
        state = caller.app.state
        self._pods = PodsTopic(SETTINGS, state.waits, state.latest.namespaces, 0)
        self.changes.begin({0: 0, 1: 0}, {0, 1})
        self.waits.begin({0: 0, 1: 0}, {0, 1}, OF_ATTEMPTS)
        self._pods.begin({0: 0, 1: 0}, {0, 1})
        caller.remember()

    @property
    def changes(self) -> ChangeLog:
        log: ChangeLog = self._caller.app.state.changes
        return log

    @property
    def waits(self) -> WaitLog:
        log: WaitLog = self._caller.app.state.waits
        return log

    def publish(self, *events: Published, partition: int = 0) -> None:
        for event in events:
            if isinstance(event, Observed):
                self._publish_observation(event, partition)
            else:
                self._publish_attempt(event, partition)

    def _publish_observation(self, event: Observed, partition: int) -> None:
        _, value, headers, *_ = encode(event)
        offset = self._pod_offsets[partition]
        self._pods.take(SimpleNamespace(value=value, headers=headers, partition=partition, offset=offset))
        self._pod_offsets[partition] += 1

    def _publish_attempt(self, attempt: AttemptSummarized | AttemptRepeated, partition: int) -> None:
        latest: LatestAttempts = self._caller.app.state.latest
        pod = build_pod_key(attempt.cluster, attempt.pod)
        for part in split(attempt) if isinstance(attempt, AttemptSummarized) else [attempt]:
            _, value, headers, *_ = encode(part)
            _, taken = take_record(value, headers, latest, TopicState(), time.time)
            self.changes.read(partition, self._offsets[partition], taken, pod)
            self.waits.read_attempt(partition, self._offsets[partition], taken, pod)
            self._offsets[partition] += 1

    def list_subscriptions(self) -> list[Subscription]:
        """List the subscriptions to both logs."""
        return [*self.changes.list_subscriptions(), *self.waits.list_subscriptions()]

    def close(self) -> None:
        """End all watches, as the end of the process does."""
        self.changes.close()
        self.waits.close()

    async def watch(self, path: str, *events: Published, **headers: str) -> httpx.Response:
        """Return the answer to ``path``, while ``events`` are published one by one; the process ends after them."""
        answering = asyncio.ensure_future(self._caller.get(path, **headers))
        await wait_until(lambda: bool(self.list_subscriptions()) or answering.done())
        for event in events:
            self.publish(event)
            await asyncio.sleep(0)
        await wait_until(lambda: not any(subscription.waiting for subscription in self.list_subscriptions()))
        self.close()
        try:
            return await answering
        finally:
            self.changes.is_closed = self.waits.is_closed = False

    async def read_events(self, path: str, *events: Published, **headers: str) -> list[dict[str, Any]]:
        return parse_lines(await self.watch(path, *events, **headers))


def parse_lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == httpx.codes.OK, answer.text
    return [orjson.loads(line) for line in answer.text.splitlines()]


def list_types(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - nothing signals when it holds
            await asyncio.sleep(0)
