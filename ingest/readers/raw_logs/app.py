"""The Faust app of the raw logs: the only module of ``ingest`` that knows Faust (0.15.3).

``noack().events()``: Faust acknowledges nothing by itself. After a rebalance it forgets what was acknowledged and not
committed, and reads from the committed offsets: so all state is dropped when partitions are revoked. No tables, no
leader topic, no declared topics, no web server.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from faust import App
from faust.types import StreamT

from ingest.errors import KafkaUnavailableError
from ingest.readers.raw_logs.agent import RawLogs
from ingest.reading.kafka import KafkaSink
from ingest.reading.metrics import Metrics
from ingest.reading.trusted_containers import TrustedContainers
from runtime.files.scratch import scratch_folder
from runtime.kafka.faust_connection import build_faust_arguments
from runtime.kafka.record import Record
from runtime.refused_credentials import end_when_refused
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import run_until_first_ends
from schemas.topics import RAW_LOGS

SETTLE_SECONDS: Final = 5.0
COMMIT_SECONDS: Final = 0.5
SESSION_SECONDS: Final = 20.0
_BUFFERED_RECORDS: Final = 512


def create_app(kafka: KafkaConnection, folder: Path, raw_logs: RawLogs, group: str) -> App:
    """Create an app whose only agent feeds ``raw_logs``. ``folder``: Faust insists on a data folder."""
    app = App(
        group,
        **build_faust_arguments(kafka),
        datadir=str(folder),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        # `pipeline provision` creates the topics; Faust would do it with settings of its own.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        # A new group reads what shippers sent before it existed.
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=SESSION_SECONDS,
        broker_heartbeat_interval=SESSION_SECONDS / 4,
        broker_request_timeout=40.0,
        broker_commit_interval=COMMIT_SECONDS,
        stream_buffer_maxsize=_BUFFERED_RECORDS,
        stream_wait_empty=False,
        # There are no tables to recover.
        stream_recovery_delay=0.0,
    )
    topic = app.topic(RAW_LOGS.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def read_raw_logs(stream: StreamT[bytes]) -> None:
        await raw_logs.read(_iterate_records(app, stream))

    app.agent(topic, name="read-raw-logs", concurrency=1)(read_raw_logs)

    async def on_revoked(_app: App, _revoked: set[Any], **_: Any) -> None:
        raw_logs.forget()

    app.on_partitions_revoked.connect(on_revoked, weak=False)
    return app


async def _iterate_records(app: App, stream: StreamT[bytes]) -> AsyncIterator[Record]:
    async for event in stream.noack().events():
        message = event.message

        def acknowledge(message: Any = message) -> object:
            return message.ack(app.consumer)

        fields = message.topic, message.partition, message.offset, message.key, message.value, message.headers
        yield Record(*fields, round(message.timestamp * 1000), acknowledge)


async def serve(
    sink: KafkaSink,
    kafka: KafkaConnection,
    stop: asyncio.Event,
    group: str,
    metrics: Metrics,
    *,
    trusted: TrustedContainers,
    cluster: str,
) -> RawLogs:
    """Read until ``stop`` is set, or Kafka takes no more events. Raises ``KafkaUnavailableError``, and
    ``FixedCredentialsError``."""
    failed: list[BaseException] = []
    raw_logs = RawLogs(_StoppingSink(sink, failed, stop), trusted=trusted, cluster=cluster)

    async def settle_until_stopped() -> None:
        while not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    await stop.wait()
            if not failed:
                await raw_logs.settle()
            metrics.note(raw_logs.to_counts())

    with scratch_folder("raw-logs") as folder:
        app = create_app(kafka, folder, raw_logs, group)
        await app.start()
        try:
            await run_until_first_ends(settle_until_stopped(), end_when_refused())
        finally:
            await app.stop()
    if failed:
        raise failed[0]
    return raw_logs


class _StoppingSink:
    """Stops the process when sending fails: Faust would swallow the error and continue after the record."""

    def __init__(self, sink: KafkaSink, failed: list[BaseException], stop: asyncio.Event) -> None:
        self._sink, self._failed, self._stop = sink, failed, stop

    async def send(self, events: Any) -> None:
        try:
            await self._sink.send(events)
        except KafkaUnavailableError as error:
            self._failed.append(error)
            self._stop.set()
            # Never return: the record must not be acknowledged, and the process is stopping.
            await asyncio.Event().wait()
