"""Events to Kafka: in order, each acknowledged by all replicas before the checkpoint moves on."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from schemas.codec.records import encode
from schemas.events import Event
from schemas.topics import DECISIONS, NODES, PODS

log = logging.getLogger(__name__)

GIVE_UP_SECONDS: Final = 120.0
SAY_SO_SECONDS: Final = 5.0

_TOPIC_OF: Final = {kind: topic.name for topic in (DECISIONS, NODES, PODS) for kind in topic.events}


class KafkaUnavailableError(Exception):
    """Kafka did not take the events; the text says why, and what to do."""


class KafkaSink:
    """Use it as an async context: ``async with KafkaSink(servers) as sink``."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._producer: Any = None

    async def __aenter__(self) -> Self:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._servers,
            client_id="schedulerlog-ingest",
            acks="all",
            enable_idempotence=True,
            compression_type="zstd",
            linger_ms=5,
            max_batch_size=512 * 1024,
            max_request_size=DECISIONS.max_message_bytes,
        )
        try:
            await self._producer.start()
            cluster = await self._producer.client.fetch_all_metadata()
        except (KafkaError, OSError) as error:
            await self._producer.stop()
            raise KafkaUnavailableError(f"no Kafka at {self._servers}: {error}") from None
        # Asking for all topics creates none, where sending to one might, with the broker's defaults.
        if absent := sorted(set(_TOPIC_OF.values()) - set(cluster.topics())):
            await self._producer.stop()
            raise KafkaUnavailableError(
                f"no topic {', '.join(absent)} at {self._servers}: run `python -m pipeline provision`"
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def send(self, events: Sequence[Event]) -> None:
        """Return when all of them are acknowledged. Raises ``KafkaUnavailableError``."""
        notice = asyncio.get_running_loop().call_later(SAY_SO_SECONDS, self._say_so, len(events))
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                waiting = [await self._hand_over(event) for event in events]
                await asyncio.gather(*waiting)
        except (KafkaError, TimeoutError) as error:
            raise KafkaUnavailableError(
                f"{self._servers} did not take {len(events)} events ({type(error).__name__}: {error}); "
                "start again to go on behind the last ones it took"
            ) from None
        finally:
            notice.cancel()

    def _say_so(self, events: int) -> None:
        seconds = GIVE_UP_SECONDS - SAY_SO_SECONDS
        log.warning("%s does not take %d events; waiting for it, %.0f s at most", self._servers, events, seconds)

    async def _hand_over(self, event: Event) -> "asyncio.Future[Any]":
        record = encode(event)
        future: asyncio.Future[Any] = await self._producer.send(
            _TOPIC_OF[type(event)], record.value, key=record.key, headers=record.headers
        )
        return future
