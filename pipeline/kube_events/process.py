"""``python -m pipeline events`` as a process: consumes messages, writes them as events, then commits their offsets."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pipeline.kube_events.event_writer import EventPolicy, EventWriter
from pipeline.metrics import EventsMetrics, TopicsMetrics
from pipeline.sinks.kafka import create_topics_sink
from runtime.backoff import RateLimiter
from runtime.kafka.consumer import Connection, commit, create_consumer, followed, keep_reconnecting, on_assignment
from runtime.kafka.record import to_record
from runtime.kafka.topics import list_topic_names, require
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.settings.addresses import HostPort
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import run_until_stopped
from runtime.telemetry.health import ServeHealth, report_no_problem, serving
from schemas.topics import DEAD_LETTERS, MESSAGES

MAX_RECORDS: Final = 5_000
"""Records of one batch. The longer a batch takes, the larger is the next one, and more retries share a request."""
_LONGEST_BATCH_SECONDS: Final = 3_600
"""A batch may wait this long for the API server before the group gives the partitions to another process."""


@dataclass(frozen=True, slots=True)
class Settings:
    kafka: KafkaConnection
    group: str
    load: LoadConfiguration
    """Loader of the configuration for the API server."""
    qps: float
    burst: int
    linger_seconds: float
    """Retries that come within this time share a request."""
    metrics_address: HostPort | None
    policy: EventPolicy


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``KubeConfigError``, ``NotProvisionedError`` if topics are missing, ``SettingError`` if the metrics address
    is in use.
    """
    await run_until_stopped(work(settings))


async def work(settings: Settings, serve_health: ServeHealth = serving) -> None:
    """Work until cancelled; ``serve_health`` shows metrics and readiness meanwhile."""
    metrics = EventsMetrics()
    client = Client(
        await ApiCredentials.open(settings.load),
        rate_limiter=RateLimiter(settings.qps, settings.burst),
        count=lambda verb, result: metrics.requests.labels(verb, result).inc(),
    )
    topics = create_topics_sink(settings.kafka, TopicsMetrics("events", metrics.registry))
    writer = EventWriter(client, topics, metrics, settings.policy)
    connection = Connection(settings.policy.longest_pause_seconds)

    async def run_session() -> None:
        require([MESSAGES.name, DEAD_LETTERS.name], await list_topic_names(settings.kafka))
        consumer = create_consumer(
            settings.kafka, group=settings.group, max_poll_interval_ms=_LONGEST_BATCH_SECONDS * 1000
        )
        # With a listener, hence not in the constructor: what is known of events is out of date when partitions move.
        consumer.subscribe([MESSAGES.name], listener=on_assignment(writer.forget))
        async with followed(consumer, connection):
            await _read(consumer, writer, settings.linger_seconds)

    def check_ready() -> str:
        return "waiting for the API server" if writer.is_waiting else connection.describe_wait()

    with serve_health(settings.metrics_address, metrics.registry, report_no_problem, check_ready):
        try:
            await keep_reconnecting(run_session, connection)
        finally:
            await topics.close()
            await client.close()


async def _read(consumer: Any, writer: EventWriter, linger_seconds: float) -> None:
    while True:
        polled = await consumer.getmany(timeout_ms=1_000, max_records=MAX_RECORDS)
        if not polled:
            continue
        # Retries of one pod come in bursts: those that arrive while this waits are counted by the same request.
        await asyncio.sleep(linger_seconds)
        more = await consumer.getmany(timeout_ms=0, max_records=MAX_RECORDS)
        batches = [*polled.values(), *more.values()]
        await writer.write([to_record(record) for records in batches for record in records], datetime.now(UTC))
        # After every message is in an event: a crash before this line reads them again, and each is found to be
        # counted. Of a partition that is in both, `more` has the later records, and replaces the earlier ones.
        await commit(consumer, polled | more)
