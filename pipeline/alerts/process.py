"""``python -m pipeline alerts`` as a process: reads the topics by time, ticks, and publishes what changes.

Between two runs it stores one time, up to which the changes of all ticks are published, in the metadata of its group's
committed offset on the alerts topic. The alerts that fire are on that topic; everything else is read again.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pipeline.alerts.inputs import decode_inputs
from pipeline.alerts.rules import Rule
from pipeline.alerts.state import AlertState
from pipeline.alerts.timeline import TICK, Timeline
from pipeline.metrics import AlertsMetrics, TopicsMetrics
from pipeline.sinks.kafka import create_topics_sink
from runtime.backoff import describe_first_wait
from runtime.kafka.broker_clock import BrokerClock
from runtime.kafka.consumer import Connection, TopicPartition, create_consumer, followed, keep_reconnecting, read_to_end
from runtime.kafka.lease import JOINING, lease
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import record_time
from runtime.kafka.topics import administration, list_partitions, list_topic_names, require
from runtime.kubernetes.object_fields import parse_moment
from runtime.settings.addresses import HostPort
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import run_until_first_ends, run_until_stopped
from runtime.telemetry.health import ServeHealth, report_no_problem, serving
from runtime.telemetry.logs import identify_subject
from schemas.codec.records import decode, encode, format_rfc3339
from schemas.events import AlertChanged
from schemas.topics import ALERTS, CLOCK, NODES

logger = logging.getLogger(__name__)

GRACE: Final = timedelta(seconds=3)
"""Time by which records of the same moment may arrive apart on different partitions."""
_ALERTS: Final = TopicPartition(ALERTS.name, 0)
_TICKS_PER_COMMIT: Final = 60
"""A run that catches up commits this often while nothing changes. Once it has caught up, it commits at every tick."""


@dataclass(frozen=True, slots=True)
class Settings:
    kafka: KafkaConnection
    group: str
    rules: Sequence[Rule]
    metrics_address: HostPort | None
    session_seconds: float = 6.0
    """Time without a heartbeat after which another process takes over."""


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT.

    Raises ``NotProvisionedError`` if topics are missing, ``SettingError`` if the metrics address is in use.
    """
    await run_until_stopped(work(settings))


async def work(settings: Settings, serve_health: ServeHealth = serving) -> None:
    """Work until cancelled; ``serve_health`` shows metrics and readiness meanwhile."""
    metrics, connection = AlertsMetrics(), Connection()
    topics_metrics = TopicsMetrics("alerts", metrics.registry)
    topics = create_topics_sink(settings.kafka, topics_metrics)
    clock = BrokerClock(topics)
    topics_metrics.watch_clock(clock)

    waiting = JOINING

    def note_waiting(reason: str) -> None:
        nonlocal waiting
        waiting = reason

    async def run_session() -> None:
        """Wait until no other process evaluates the rules, then do so until another one takes over."""
        require([CLOCK.name], await list_topic_names(settings.kafka))
        async with lease(settings.kafka, f"{settings.group}-lease", settings.session_seconds, note_waiting) as held:
            connection.note_contact()
            await held.wait_until_held()
            await run_until_first_ends(held.wait_until_lost(), hold())

    async def hold() -> None:
        """Read as far back as the rules need, then continue; nothing is published twice."""
        await clock.wait_until_right()
        async with followed(create_consumer(settings.kafka, group=settings.group), connection) as consumer:
            reader = await _Reader.open(settings, consumer)
            note_waiting("")
            await reader.work(topics, metrics, clock)

    def check_ready() -> str:
        return describe_first_wait((clock.waiting, connection), waiting)

    with serve_health(settings.metrics_address, metrics.registry, report_no_problem, check_ready):
        try:
            await run_until_first_ends(keep_reconnecting(run_session, connection), clock.follow())
        finally:
            await topics.close()


class _Reader:
    """Reads the topics from as far back as the rules need, and ticks."""

    def __init__(self, consumer: Any, state: AlertState, ends: dict[TopicPartition, int], start: datetime) -> None:
        self._consumer, self._alerts, self._ends = consumer, state, ends
        self._timeline = Timeline(start)
        self._read_until: dict[TopicPartition, datetime] = {}
        self._start = start
        self._uncommitted_ticks = 0

    @classmethod
    async def open(cls, settings: Settings, consumer: Any) -> "_Reader":
        now = datetime.now(UTC)
        back_by_topic = AlertState(settings.rules, (), now).lookback
        committed, partitions = await _read_committed(settings, {ALERTS.name, *back_by_topic})
        # A first run fires nothing about the past: it begins with what holds from now on.
        until = committed or now
        alerts = AlertState(settings.rules, await _read_published(consumer), until)
        if committed is None and NODES.name in back_by_topic:
            # A check is published once, when its result changes: without alerts of an earlier run to restore from,
            # only the whole topic shows which nodes are broken now.
            back_by_topic[NODES.name] = NODES.retention
        since = {partition: until - back_by_topic[partition.topic] for partition in partitions if partition != _ALERTS}
        starts, ends = await _find_positions(consumer, since)
        # Assigned as well because aiokafka commits only assigned partitions. Its new records are our own.
        consumer.assign([_ALERTS, *starts])
        await consumer.seek_to_end(_ALERTS)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)
        back = max(alerts.lookback.values(), default=timedelta(0))
        logger.info("reading from %s before %s; %d alerts fire", back, format_rfc3339(until), len(alerts.firing))
        return cls(consumer, alerts, ends, until - back)

    async def work(self, topics: TopicsSink, metrics: AlertsMetrics, clock: BrokerClock) -> None:
        while True:
            # Ticks are times of this machine: by a wrong one alerts would fire, or end, that should not.
            await clock.wait_until_right()
            for partition, records in (await self._consumer.getmany(timeout_ms=500, max_records=5_000)).items():
                if partition == _ALERTS:
                    continue
                metrics.records.labels(partition.topic).inc(len(records))
                for record in records:
                    self._read(partition, record)
            await self._advance(await self._find_watermark(), topics, metrics)

    def _read(self, partition: TopicPartition, record: Any) -> None:
        # A producer's clock may be ahead; its records would wait in the timeline until then.
        received_at = min(record_time(record), datetime.now(UTC))
        self._read_until[partition] = max(received_at, self._read_until.get(partition, received_at))
        if inputs := decode_inputs(record):
            self._timeline.put(received_at, (partition.topic, partition.partition, record.offset), inputs)

    async def _find_watermark(self) -> datetime:
        """Find a time before which no further record is expected. A partition that is read to its end has the
        clock's."""
        read_until = [datetime.now(UTC) - GRACE]
        # The end at the start counts too: before the first fetch the consumer knows no highwater.
        for partition, end in self._ends.items():
            end = max(end, self._consumer.highwater(partition) or 0)
            if await self._consumer.position(partition) < end:
                read_until.append(self._read_until.get(partition, self._start))
        return min(read_until)

    async def _advance(self, watermark: datetime, topics: TopicsSink, metrics: AlertsMetrics) -> None:
        ticked = None
        for step in self._timeline.advance(watermark):
            if not isinstance(step, datetime):
                self._alerts.observe(step)
                continue
            ticked = step
            if changed := self._alerts.tick(step):
                await topics.send([encode(alert, ALERTS.name) for alert in changed])
                # After the send: a crash in between publishes the same changes at the same tick again, and `AlertState`
                # leaves them out.
                await self._commit(step)
                for alert in changed:
                    metrics.published.labels(alert.rule, alert.state).inc()
                    logger.info("%s: %s", alert.state, alert.summary, extra=_describe_alert(alert.labels))
        if ticked:
            self._uncommitted_ticks += 1
            if self._uncommitted_ticks >= _TICKS_PER_COMMIT or ticked > datetime.now(UTC) - 3 * TICK:
                await self._commit(ticked)
            metrics.clock_lag.set((datetime.now(UTC) - ticked).total_seconds())
            for severity in ("info", "warning", "critical"):
                count = sum(alert.severity == severity for alert in self._alerts.firing)
                metrics.firing.labels(severity).set(count)

    async def _commit(self, until: datetime) -> None:
        self._uncommitted_ticks = 0
        # The offset is of no use, since topics are read by time; the metadata of the commit is what is stored.
        await self._consumer.commit({_ALERTS: (0, format_rfc3339(until))})


async def _read_committed(settings: Settings, names: Collection[str]) -> tuple[datetime | None, list[TopicPartition]]:
    """Read the time up to which an earlier run has published (None if there was none), and the topics' partitions.

    Raises ``NotProvisionedError``.
    """
    async with administration(settings.kafka) as admin:
        partitions = await list_partitions(admin, sorted(names))
        offsets = await admin.list_consumer_group_offsets(settings.group)
    # What another program wrote under this group counts as no run.
    return parse_moment(offsets[_ALERTS].metadata if _ALERTS in offsets else ""), partitions


async def _read_published(consumer: Any) -> list[AlertChanged]:
    """Read everything on the alerts topic."""
    consumer.assign([_ALERTS])
    await consumer.seek_to_beginning(_ALERTS)
    events = [decode(record.value, record.headers) async for record in read_to_end(consumer)]
    return [event for event in events if isinstance(event, AlertChanged)]


async def _find_positions(
    consumer: Any, since: dict[TopicPartition, datetime]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Find the offsets to start from, by time, and the offsets where the partitions end now."""
    ends: dict[TopicPartition, int] = await consumer.end_offsets(list(since))
    offsets = await consumer.offsets_for_times(
        {partition: int(moment.timestamp() * 1000) for partition, moment in since.items()}
    )
    # A partition without a record since then has no such offset.
    return {
        partition: offsets[partition].offset if offsets[partition] else ends[partition] for partition in since
    }, ends


def _describe_alert(labels: Mapping[str, str]) -> dict[str, str]:
    """Describe the pod and the cluster of an alert for the log."""
    pod = f"{labels.get('namespace')}/{labels['pod']}" if "pod" in labels else ""
    return identify_subject(pod=pod, cluster=labels.get("cluster", ""))
