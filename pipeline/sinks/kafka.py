"""The topics that the pipeline writes. A record is written when every replica has it."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from pipeline.sinks.backoff import Backoff
from pipeline.sinks.metrics import TopicsMetrics
from schemas.codec.records import Record
from schemas.topics import DEAD_LETTERS

logger = logging.getLogger(__name__)

DELIVERY_SECONDS: Final = 60
"""A producer that has not delivered by then is given up and made anew: some of its errors never end."""
_MOST_BYTES: Final = DEAD_LETTERS.max_message_bytes + 1024 * 1024


class Outgoing(NamedTuple):
    topic: str
    record: Record


class TopicsSink:
    """Sends until it is acknowledged. Records of one key keep their order."""

    def __init__(self, servers: str, metrics: TopicsMetrics, *, max_backoff_seconds: float = 10.0) -> None:
        self._servers = servers
        self._metrics = metrics
        self._producer: AIOKafkaProducer | None = None
        self._backoff = Backoff("Kafka", max_backoff_seconds)

    @property
    def is_waiting(self) -> bool:
        """Is the broker being waited for?"""
        return self._backoff.is_waiting

    async def close(self) -> None:
        """Never longer than a few seconds, also when no broker answers."""
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                await asyncio.wait_for(producer.stop(), timeout=5)
            except (KafkaError, OSError, TimeoutError) as error:
                logger.debug("the producer did not stop cleanly: %r", error)

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Return when all are acknowledged.

        After a failure all are sent again, for the order's sake; readers know a repetition by its ``ce_id``.
        """
        while outgoing:
            try:
                await asyncio.wait_for(self._send(outgoing), timeout=DELIVERY_SECONDS)
            except (KafkaError, OSError, TimeoutError) as error:
                self._metrics.publish_retries.inc()
                await self.close()
                await self._backoff.failed(f"{type(error).__name__}: {error}")
            else:
                self._backoff.worked()
                return

    async def _send(self, outgoing: Sequence[Outgoing]) -> None:
        producer = self._producer or await self._start()
        sent = [
            await producer.send(topic, record.value, key=record.key, headers=record.headers)
            for topic, record in outgoing
        ]
        await asyncio.gather(*sent)

    async def _start(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._servers,
            enable_idempotence=True,
            acks="all",
            compression_type="zstd",
            max_request_size=_MOST_BYTES,
            # A summary's parts go out together; by default every one of them would be a request of its own.
            max_batch_size=512 * 1024,
            linger_ms=2,
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        self._producer = producer
        return producer
