"""``python -m pipeline events`` as a process: reads messages, has them counted by events, then acknowledges them."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from kube.client import Client
from kube.credentials import ApiCredentials, LoadConfiguration
from kube.rate_limiter import RateLimiter
from pipeline.health import serving
from pipeline.kube_events.event_writer import EventPolicy, EventWriter
from pipeline.kube_events.metrics import Metrics
from pipeline.runtime import check_there, topics_of, until_stopped
from pipeline.sinks.backoff import Backoff
from pipeline.sinks.kafka import TopicsSink
from pipeline.sinks.metrics import TopicsMetrics
from schemas.topics import DEAD_LETTERS, MESSAGES

logger = logging.getLogger(__name__)

MAX_RECORDS: Final = 5_000
"""Of one batch: the longer a batch takes, the larger the next one, and the more retries share a request."""
_LONGEST_BATCH_SECONDS: Final = 3_600
"""After this time in one batch, the API server being away, others may take the partitions."""


@dataclass(frozen=True, slots=True)
class Settings:
    servers: str
    group: str
    load: LoadConfiguration
    """How to reach the API server."""
    qps: float
    burst: int
    linger_seconds: float
    """Retries that come within this time share a request."""
    metrics_port: int | None
    policy: EventPolicy


class _Moved(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def on_partitions_revoked(self, revoked: object) -> None:
        """Nothing to do: the next owner of the partition reads what is not committed again."""

    def on_partitions_assigned(self, assigned: object) -> None:  # noqa: ARG002 - the base class calls it so
        self._writer.forget()


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``KubeConfigError``, ``NotProvisionedError`` where topics are missing, ``OSError`` where the metrics port is
    taken.
    """
    await until_stopped(_work(settings))


async def _work(settings: Settings) -> None:
    metrics = Metrics()
    client = Client(
        await ApiCredentials.open(settings.load),
        rate_limiter=RateLimiter(settings.qps, settings.burst),
        count=lambda verb, result: metrics.requests.labels(verb, result).inc(),
    )
    topics = TopicsSink(settings.servers, TopicsMetrics("events", metrics.registry))
    writer = EventWriter(client, topics, metrics, settings.policy)
    state = _State(writer)
    port = settings.metrics_port
    health = nullcontext() if port is None else serving(port, metrics.registry, lambda: "", state.ready)
    with health:
        try:
            await _read_for_ever(settings, writer, state)
        finally:
            await topics.close()
            await client.close()


@dataclass(slots=True)
class _State:
    writer: EventWriter
    waits_for: str = "Kafka"

    def ready(self) -> str:
        waits_for = "the API server" if self.writer.is_waiting else self.waits_for
        return f"waiting for {waits_for}" if waits_for else ""


async def _read_for_ever(settings: Settings, writer: EventWriter, state: _State) -> None:
    """A broker that is away is waited for; a consumer that has failed is replaced."""
    backoff = Backoff("Kafka", settings.policy.longest_pause_seconds)
    while True:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.servers,
            group_id=settings.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_interval_ms=_LONGEST_BATCH_SECONDS * 1000,
        )
        try:
            check_there([MESSAGES.name, DEAD_LETTERS.name], await topics_of(settings.servers))
            consumer.subscribe([MESSAGES.name], listener=_Moved(writer))
            await consumer.start()
            backoff.worked()
            state.waits_for = ""
            await _read(consumer, writer, settings.linger_seconds)
        except (KafkaError, OSError) as error:
            state.waits_for = "Kafka"
            await backoff.failed(f"{type(error).__name__}: {error}")
        finally:
            await consumer.stop()


async def _read(consumer: Any, writer: EventWriter, linger_seconds: float) -> None:
    while True:
        found = await consumer.getmany(timeout_ms=1_000, max_records=MAX_RECORDS)
        if not found:
            continue
        await asyncio.sleep(linger_seconds)
        more = await consumer.getmany(timeout_ms=0, max_records=MAX_RECORDS)
        batches = [*found.items(), *more.items()]
        await writer.write([record for _, records in batches for record in records], datetime.now(UTC))
        await _acknowledge(consumer, batches)


async def _acknowledge(consumer: Any, batches: Sequence[tuple[Any, Sequence[Any]]]) -> None:
    try:
        await consumer.commit({partition: records[-1].offset + 1 for partition, records in batches})
    except (CommitFailedError, IllegalStateError) as error:
        logger.info(
            "partitions were reassigned before the commit; their new owner reads these messages again: %s",
            error,
        )
