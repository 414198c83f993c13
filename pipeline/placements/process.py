"""``python -m pipeline placements`` as a process: consumes four topics, writes what follows, then commits offsets.

Audits compare what happened on all nodes and to pods of all partitions, so one process has to read everything: the one
that holds the lease. Others wait to take over.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from engine.summaries.placement_audit import Pools
from pipeline.metrics import PlacementsMetrics
from pipeline.placements.audits import PlacementAudits
from pipeline.placements.batch_writer import BatchWriter
from pipeline.placements.occupancy_state import OccupancyState
from pipeline.sinks.index_watch import IndexWatch, watch_until_cancelled
from pipeline.sinks.kafka import create_topics_sink
from pipeline.sinks.opensearch import OpenSearchSink
from runtime.backoff import describe_first_wait
from runtime.kafka.broker_clock import BrokerClock
from runtime.kafka.consumer import (
    Connection,
    TopicPartition,
    connected,
    create_consumer,
    keep_reconnecting,
    read_to_end,
)
from runtime.kafka.lease import JOINING, lease
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import record_time
from runtime.kafka.topics import administration, list_partitions
from runtime.opensearch.client import create_client
from runtime.settings.addresses import HostPort
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.signals import run_until_first_ends, run_until_stopped
from runtime.telemetry.health import ServeHealth, report_no_problem, serving
from schemas.topics import ATTEMPTS, CLOCK, DEAD_LETTERS, FINDINGS, NODES, PODS, SCHEDULERS

logger = logging.getLogger(__name__)

READ: Final = (ATTEMPTS, PODS, NODES, SCHEDULERS)
MAX_RECORDS: Final = 2_000
"""Records of one batch. Each may be about another pod, for which the index has to be searched."""
GRACE: Final = timedelta(seconds=5)
"""Records of the same time may arrive this much apart on different topics."""
AUDIT_SECONDS: Final = 1.0
"""Pause between two audits."""
UNINDEXED: Final = timedelta(hours=1)
"""Time for which the index may lack a published finding: later ones are read from their topic."""


@dataclass(frozen=True, slots=True)
class Settings:
    kafka: KafkaConnection
    opensearch: OpenSearchConnection
    group: str
    metrics_address: HostPort | None
    session_seconds: float
    """Time without a heartbeat after which another process takes over."""
    pools: Pools | None = None


@dataclass(slots=True)
class _State:
    index: OpenSearchSink
    clock: BrokerClock
    connection: Connection = field(default_factory=Connection)
    occupancy: OccupancyState = field(default_factory=OccupancyState)
    audited_until: datetime | None = None
    not_ready: str = JOINING

    def measure_lag(self) -> float:
        """Measure how far audits are behind the clock; 0 before the first one."""
        return (datetime.now(UTC) - self.audited_until).total_seconds() if self.audited_until else 0.0

    def note_waiting(self, reason: str) -> None:
        self.not_ready = reason

    def check_ready(self) -> str:
        return describe_first_wait((self.index.waiting, self.clock.waiting, self.connection), self.not_ready)


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``NotProvisionedError`` if topics or templates are missing, ``SettingError`` if the metrics address is in
    use.
    """
    await run_until_stopped(work(settings))


async def work(settings: Settings, serve_health: ServeHealth = serving) -> None:
    """Work until cancelled; ``serve_health`` shows metrics and readiness meanwhile."""
    metrics = PlacementsMetrics()
    store = create_client(settings.opensearch)
    topics = create_topics_sink(settings.kafka, metrics.topics)
    clock = BrokerClock(topics)
    index = OpenSearchSink(store, metrics.index, wait_for_right_time=clock.wait_until_right)
    state = _State(index, clock)
    metrics.topics.watch_clock(clock)
    metrics.watch("lag_seconds", state.measure_lag)
    metrics.watch("pods", lambda: len(state.occupancy))
    metrics.watch("holding", lambda: len(state.occupancy.holdings))
    with serve_health(settings.metrics_address, metrics.registry, report_no_problem, state.check_ready):
        try:
            # Before anything is read: without its template a new index would guess the mapping of its fields.
            await index.check()
            reading = _read(settings, index, topics, metrics, state)
            await run_until_first_ends(
                reading,
                watch_until_cancelled(IndexWatch(store, index.forget_indices, lambda: index.written_indices)),
                state.clock.follow(),
            )
        finally:
            await topics.close()
            await index.close()


async def _read(
    settings: Settings, index: OpenSearchSink, topics: TopicsSink, metrics: PlacementsMetrics, state: _State
) -> None:
    """Process what is not committed yet and what is added, while this process holds the lease; until cancelled."""

    async def run_session() -> None:
        written = [FINDINGS.name, DEAD_LETTERS.name, CLOCK.name]
        async with administration(settings.kafka) as admin:
            partitions = await list_partitions(admin, [topic.name for topic in READ], written)
            findings = await list_partitions(admin, [FINDINGS.name])
        group = f"{settings.group}-lease"
        async with lease(settings.kafka, group, settings.session_seconds, state.note_waiting) as held:
            state.connection.note_contact()
            await held.wait_until_held()
            logger.info("this process holds the lease %s: it works, others wait", group)
            try:
                await run_until_first_ends(held.wait_until_lost(), hold(partitions, findings))
            finally:
                state.audited_until = None

    async def hold(partitions: Sequence[TopicPartition], findings: Sequence[TopicPartition]) -> None:
        # Loaded whenever the lease is acquired: another process may have worked meanwhile, and written to the index
        # what a search finds only after a refresh.
        await state.clock.wait_until_right()
        index.forget()
        state.occupancy = OccupancyState()
        writer = BatchWriter(state.occupancy, PlacementAudits(settings.pools, index), index, topics, metrics)
        now = datetime.now(UTC)
        await writer.open(now, await _read_published(settings.kafka, findings, now - UNINDEXED))
        consumer = create_consumer(
            settings.kafka, group=settings.group, max_partition_fetch_bytes=2 * ATTEMPTS.max_message_bytes
        )
        async with connected(consumer):
            # All partitions, without a group's balancing: the state of one process has to cover every node.
            consumer.assign(partitions)
            state.not_ready = ""
            await PlacementReader(consumer, writer, state).work()

    await keep_reconnecting(run_session, state.connection)


async def _read_published(kafka: KafkaConnection, partitions: Sequence[TopicPartition], since: datetime) -> list[str]:
    """Read the ids of the findings that were published since. Raises ``KafkaError``."""
    async with connected(create_consumer(kafka)) as consumer:
        consumer.assign(partitions)
        offsets = await consumer.offsets_for_times(dict.fromkeys(partitions, int(since.timestamp() * 1000)))
        for partition in partitions:
            if offsets[partition]:
                consumer.seek(partition, offsets[partition].offset)
            else:
                await consumer.seek_to_end(partition)
        return [dict(record.headers).get("ce_id", b"").decode() async for record in read_to_end(consumer)]


class PlacementReader:
    """Reader of the topics, from the committed offsets on, while this machine's clock is right."""

    def __init__(self, consumer: Any, writer: BatchWriter, state: _State) -> None:
        self._consumer, self._writer, self._state = consumer, writer, state
        self._read_until: dict[TopicPartition, datetime] = {}
        self._audited_at = 0.0

    async def work(self) -> None:
        while True:
            batches = await self._consumer.getmany(timeout_ms=500, max_records=MAX_RECORDS)
            # Records are judged by this machine's time, which may have been set while they were waited for.
            await self._state.clock.wait_until_right()
            if batches:
                # The commit comes after it: a crash in between takes the batch again, which changes nothing.
                await self._writer.take(record for records in batches.values() for record in records)
                await self._consumer.commit(
                    {partition: records[-1].offset + 1 for partition, records in batches.items()}
                )
            for partition, records in batches.items():
                # A producer's clock may be ahead.
                self._read_until[partition] = min(record_time(records[-1]), datetime.now(UTC))
            if time.monotonic() - self._audited_at >= AUDIT_SECONDS:
                # Audits are made until it, too.
                await self._state.clock.wait_until_right()
                await self._audit()

    async def _audit(self) -> None:
        self._audited_at = time.monotonic()
        until = await self._find_watermark()
        if until is not None:
            self._state.audited_until = until
            await self._writer.audit(until)

    async def _find_watermark(self) -> datetime | None:
        """Find a time before which no further record is expected; None while a partition has not been read from, or the
        brokers do not answer.

        A partition that is read to its end has the clock's.
        """
        # The end of a placement and the start of the next one are on different topics, timed by different clocks.
        read_until = [datetime.now(UTC) - GRACE]
        # Asked for: what the client knows of the ends is as old as its last fetch. While the brokers are away, no time
        # may pass.
        ends = await self._state.connection.ask(self._consumer.end_offsets(self._consumer.assignment()))
        if ends is None:
            return None
        for partition, end in ends.items():
            if await self._consumer.position(partition) < end:
                if partition not in self._read_until:
                    return None
                read_until.append(self._read_until[partition] - GRACE)
        return min(read_until)
