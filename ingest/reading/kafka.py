"""Sends events to Kafka: in order, each acknowledged by all replicas before the checkpoint moves on."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

from ingest.errors import KafkaUnavailableError
from runtime.kafka.errors import UNAVAILABLE, explain_kafka_error
from runtime.kafka.producer import (
    count_record_bytes,
    create_idempotent_producer,
    hand_over,
    is_too_large,
    list_broker_topics,
    start_producer,
)
from runtime.kafka.topics import describe_missing_topics
from runtime.settings.kafka_connection import KafkaConnection
from schemas.codec.oversize import shorten
from schemas.codec.records import EncodedRecord, encode
from schemas.events import Event, NodeStateChanged
from schemas.topics import DECISIONS, NODE_STATES, NODES, PODS, SCHEDULERS

log = logging.getLogger(__name__)

# Longer than a broker's restart takes.
GIVE_UP_SECONDS: Final = 120.0
WARN_SECONDS: Final = 5.0

_TOPICS: Final = (DECISIONS, NODES, NODE_STATES, PODS, SCHEDULERS)
_TOPIC_OF: Final = {kind: topic.name for topic in _TOPICS for kind in topic.events}


class KafkaSink:
    """Use it as an async context: ``async with KafkaSink(kafka) as sink``."""

    def __init__(self, kafka: KafkaConnection) -> None:
        self._kafka = kafka
        self._producer: Any = None
        self._is_taking = False

    async def __aenter__(self) -> Self:
        producer = create_idempotent_producer(self._kafka, DECISIONS.max_message_bytes, client_id="schedulerlog-ingest")
        try:
            self._producer = await start_producer(producer)
            topics = await list_broker_topics(producer)
        except UNAVAILABLE as error:
            await producer.stop()
            raise KafkaUnavailableError(f"no Kafka at {self._kafka}: {explain_kafka_error(error)}") from None
        # At the start: the producer would otherwise wait two minutes for a topic that nothing creates.
        if problem := describe_missing_topics(sorted(set(_TOPIC_OF.values())), topics):
            await producer.stop()
            raise KafkaUnavailableError(f"{self._kafka}: {problem}")
        self._is_taking = True
        return self

    def describe_wait(self) -> str:
        """Describe what readiness waits for: empty while Kafka takes events."""
        return "" if self._is_taking else "waiting for Kafka"

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def send(self, events: Sequence[Event]) -> None:
        """Return when all of them are acknowledged. Raises ``KafkaUnavailableError``."""
        warning = asyncio.get_running_loop().call_later(WARN_SECONDS, self._warn, len(events))
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                # States are acknowledged before the verdicts that refer to them are sent: the topics are different.
                await self._send(event for event in events if isinstance(event, NodeStateChanged))
                await self._send(event for event in events if not isinstance(event, NodeStateChanged))
        except UNAVAILABLE as error:
            raise KafkaUnavailableError(
                f"{self._kafka} did not take {len(events)} events ({explain_kafka_error(error)}); "
                "start again to continue after the last ones it took"
            ) from None
        else:
            self._is_taking = True
        finally:
            warning.cancel()

    async def _send(self, events: Iterable[Event]) -> None:
        outgoing = [record for event in events if (record := _to_record(event))]
        # Handed over one after the other, which keeps the order within a partition, and awaited together.
        await asyncio.gather(*[await hand_over(self._producer, record) for record in outgoing])

    def _warn(self, events: int) -> None:
        self._is_taking = False
        seconds = GIVE_UP_SECONDS - WARN_SECONDS
        log.warning("%s does not take %d events; waiting for it, %.0f s at most", self._kafka, events, seconds)


def _to_record(event: Event) -> EncodedRecord | None:
    """Encode the event; None if it is too large for its topic and can't be shortened."""
    record = encode(event, _TOPIC_OF[type(event)])
    if not is_too_large(record):
        return record
    # Kafka would refuse it at every try, and nothing behind it would be read.
    log.error(
        "%s of %d bytes is too large for %s: it is shortened or left out",
        event.id,
        count_record_bytes(record),
        record.topic,
    )
    instead = shorten(event)
    shortened_record = encode(instead, _TOPIC_OF[type(instead)]) if instead else None
    return shortened_record if shortened_record and not is_too_large(shortened_record) else None
