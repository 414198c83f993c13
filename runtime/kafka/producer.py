"""Producers: a record is acknowledged when every replica has it, and records of one key keep their order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaProducer

from runtime.backoff import Backoff
from runtime.kafka.errors import UNAVAILABLE, explain_kafka_error
from runtime.kafka.record import RecordPosition
from runtime.kafka.security import build_client_arguments
from runtime.settings.kafka_connection import KafkaConnection
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS, TOPICS

logger = logging.getLogger(__name__)

DELIVERY_SECONDS: Final = 60
"""Seconds after which a new producer replaces one that has not delivered: some errors of a producer never end."""
SILENCE_SECONDS: Final = 5
"""Seconds without an acknowledgement after which the broker counts as away."""
CLOSE_SECONDS: Final = 5
_MAX_BYTES: Final = {topic.name: topic.max_message_bytes for topic in TOPICS}
_DEFAULT_MAX_BYTES: Final = DECISIONS.max_message_bytes
_OVERHEAD_BYTES: Final = 16 * 1024
"""The headers of a record and its batch, and what compression adds to a value that can't be compressed."""
_BATCH_BYTES: Final = 512 * 1024
"""The parts of a record go out together; with the client's default every one of them would be a request of its own."""


def create_idempotent_producer(
    kafka: KafkaConnection, max_request_bytes: int, *, client_id: str = "schedulerlog", linger_ms: int = 5
) -> AIOKafkaProducer:
    """Create a producer that is not started yet. Its own retries neither repeat nor reorder records."""
    return AIOKafkaProducer(
        **build_client_arguments(kafka),
        client_id=client_id,
        # A leader that acknowledges alone and then fails takes the record with it.
        acks="all",
        # Off by default, and then a batch expires after the request's time-out. With it a batch is retried without an
        # end, hence `DELIVERY_SECONDS`; and an out-of-order error needs a new producer (aiokafka issue 1017).
        enable_idempotence=True,
        compression_type="zstd",
        linger_ms=linger_ms,
        max_batch_size=_BATCH_BYTES,
        max_request_size=max_request_bytes,
        request_timeout_ms=30_000,
        retry_backoff_ms=200,
    )


async def start_producer(producer: Any) -> Any:
    """Connect the producer and return it. A producer that can't connect is stopped and releases what it holds. Raises
    ``UNAVAILABLE``."""
    try:
        await producer.start()
    # Of any kind: a start that is cancelled leaves connections and tasks behind as well.
    except BaseException:
        await producer.stop()
        raise
    return producer


async def hand_over(producer: Any, record: EncodedRecord) -> "asyncio.Future[Any]":
    """Queue the record; the future is done when all replicas have it. Raises ``MessageSizeTooLargeError``."""
    # Awaits room in the producer's buffer, no acknowledgement. The future that the caller awaits later decides which
    # records count as delivered.
    future: asyncio.Future[Any] = await producer.send(
        record.topic, record.value, key=record.key, headers=record.headers, partition=record.partition
    )
    return future


def count_record_bytes(record: EncodedRecord) -> int:
    """Count the bytes of key, value and headers, before compression."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def is_too_large(record: EncodedRecord) -> bool:
    """Tell whether its topic would refuse the record, now and at every later try."""
    return count_record_bytes(record) > _MAX_BYTES.get(record.topic, _DEFAULT_MAX_BYTES) - _OVERHEAD_BYTES


async def list_broker_topics(producer: Any) -> set[str]:
    """Return the topics that the broker has. Raises ``KafkaError``.

    Asking for all of them creates none, where asking for one by its name might, with the broker's defaults.
    """
    cluster = await producer.client.fetch_all_metadata()
    return set(cluster.topics())


class TopicsSink:
    """Sends until it is acknowledged, over as many connections as that takes."""

    def __init__(
        self,
        kafka: KafkaConnection,
        max_request_bytes: int,
        *,
        count_retry: Callable[[], object],
        instead_of: Callable[[EncodedRecord], EncodedRecord],
        max_backoff_seconds: float = 10.0,
    ) -> None:
        """Prepare a sink that connects on entry. ``count_retry`` is called each time that records have to be sent
        again. ``instead_of`` makes the record that replaces one that is too large for its topic."""
        self._instead_of = instead_of
        self._kafka = kafka
        self._max_request_bytes = max_request_bytes
        self._count_retry = count_retry
        self._producer: Any = None
        self._opening = asyncio.Lock()
        self._backoff = Backoff("Kafka", max_backoff_seconds)

    @property
    def is_waiting(self) -> bool:
        """Tell whether the sink waits for the broker."""
        return self._backoff.is_waiting

    @property
    def waiting(self) -> Backoff:
        """Awaited service, and how long the sink has been waiting for it."""
        return self._backoff

    async def close(self) -> None:
        """Stop the producer, within a few seconds also when no broker answers."""
        # Taken out first: the next `send` opens a new producer, also where stopping this one takes its whole time.
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                # `stop` flushes what is buffered first, which never ends while no broker answers.
                async with asyncio.timeout(CLOSE_SECONDS):
                    await producer.stop()
            except UNAVAILABLE as error:
                logger.debug("the producer did not stop cleanly: %r", error)

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        """Send the records and return their places when the broker has acknowledged all of them.

        After a failure all are sent again, to keep their order; readers recognize a repetition by its ``ce_id``.
        """
        outgoing = [self._instead_of(record) if is_too_large(record) else record for record in outgoing]
        while True:
            try:
                # The time covers the connection too: a broker that accepts and does not answer would hold it otherwise.
                async with asyncio.timeout(DELIVERY_SECONDS):
                    places = await self._await_acknowledgement(self._send(outgoing)) if outgoing else ()
            except UNAVAILABLE as error:
                self._count_retry()
                # Its buffer still has the records, which both producers would send otherwise.
                await self.close()
                await self._backoff.wait_after_failure(explain_kafka_error(error))
            else:
                self._backoff.note_success()
                return places

    async def _await_acknowledgement(self, sending: Awaitable[Sequence[RecordPosition]]) -> Sequence[RecordPosition]:
        """Await the places; after a while without them, readiness names the awaited service."""
        silence = f"no acknowledgement for {SILENCE_SECONDS} s"
        noting = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._backoff.note, silence)
        try:
            return await sending
        finally:
            noting.cancel()

    async def _send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        # One at a time: of two callers each would open a producer, and one of the two would never be stopped.
        async with self._opening:
            if self._producer is None:
                producer = create_idempotent_producer(self._kafka, self._max_request_bytes, linger_ms=2)
                self._producer = await start_producer(producer)
            producer = self._producer
        # All are queued, in their order, before the first is awaited, so that they share batches.
        acknowledged = await asyncio.gather(*[await hand_over(producer, record) for record in outgoing])
        return [RecordPosition(metadata.partition, metadata.offset, metadata.timestamp) for metadata in acknowledged]
