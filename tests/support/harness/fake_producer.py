"""Kafka as a producer sees it: remembers what is in it, and fails where a test says."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from runtime.settings.kafka_connection import KafkaConnection
from scheduler.publish import kafka_publisher

SITES: Final = ("start", "metadata", "send", "acknowledgement", "acknowledgement of what it has", "stop")
"""Steps at which a producer may fail."""


class FakeKafka:
    """Plays the producers that are made one after the other."""

    def __init__(self) -> None:
        self.topics = {topic.name for topic in kafka_publisher.TOPICS}
        self.log: list[bytes] = []
        """The ids of what it has, without ``/concluded``."""
        self.values: list[bytes] = []
        self.headers: list[list[tuple[str, bytes]]] = []
        self.producers = 0
        self.holds_back = False
        self.failure: Callable[[str, bytes], BaseException | None] = lambda _site, _name: None
        """Of a site and the id of a record, if it is about one: the error there."""

    def __call__(self, _: KafkaConnection) -> Any:
        self.producers += 1
        return _FakeProducer(self)

    def fail(self, site: str, name: bytes = b"") -> None:
        if failure := self.failure(site, name):
            raise failure


class _FakeProducer:
    def __init__(self, kafka: FakeKafka) -> None:
        self._kafka, self.client = kafka, self

    async def start(self) -> None:
        self._kafka.fail("start")

    async def stop(self) -> None:
        self._kafka.fail("stop")

    async def fetch_all_metadata(self) -> Any:
        self._kafka.fail("metadata")
        return self

    def topics(self) -> set[str]:
        return self._kafka.topics

    async def send(
        self, topic: str, value: bytes, key: bytes, headers: Any, partition: int | None
    ) -> "asyncio.Future[None]":
        assert partition is None, "a pod's records lie in the partition of its key"
        name = dict(headers)["ce_id"].removesuffix(b"/concluded")
        self._kafka.fail("send", name)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failure = self._kafka.failure("acknowledgement", name)
        self._kafka.values.append(value)
        self._kafka.headers.append(headers)
        if not failure and not self._kafka.holds_back:
            self._kafka.log.append(name)
            failure = self._kafka.failure("acknowledgement of what it has", name)
        if isinstance(failure, asyncio.CancelledError):
            future.cancel()
        elif failure:
            future.set_exception(failure)
        elif not self._kafka.holds_back:
            future.set_result(None)
        return future
