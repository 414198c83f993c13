"""The Faust app. Only this module and faust_consumer know Faust (0.15.3; its traps below were read in its source).

- ``noack().events()``: Faust acknowledges nothing by itself. Its ``take()``, and a plain ``async for``, acknowledge
  also what the agent failed on: of 100 records, one of which raised, 70 were lost.
- ``concurrency=1``, and acknowledgements in offset order: Faust commits an offset although an earlier one is open (its
  issue 606).
- ``stream_wait_empty=False``: otherwise a rebalance waits until all attempts are closed.
- On a rebalance Faust forgets what was acknowledged and not committed, seeks to the committed offsets and gives every
  record a new generation; records of an older one never reach the agent. So all state is dropped when partitions are
  revoked, and read again.
- Raw bytes, decoded by us: Faust acknowledges a record that it can't decode before it reports it.
- No tables (their recovery reads 10,000 records a second), no leader topic, no declared topics, no web server.
- ``faust_consumer`` has the overrides of Faust's internals.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from faust import App
from faust.types import StreamT

from pipeline.settings import WorkerSettings
from pipeline.worker.faust_consumer import NoTables, RunConsumer, committed_offset
from runtime.kafka.consumer import METADATA_MS
from runtime.kafka.faust_connection import faust_arguments
from runtime.kafka.record import Record
from schemas.topics import DECISIONS

__all__ = ["App", "create_app", "is_reading", "positions", "stop_reading"]

Fold = Callable[[AsyncIterator[Record]], Awaitable[None]]

COMMIT_SECONDS: Final = 0.5
"""Records that were acknowledged after the last commit are read again after a crash or a rebalance."""
_RUN_RECORDS: Final = 64
"""In one message; each has up to 64 KiB."""
_BUFFERED_RUNS: Final = 2
"""Messages that wait for the agent before reading pauses."""


def create_app(settings: WorkerSettings, folder: Path, fold: Fold, revoke: Callable[[], Awaitable[None]]) -> App:
    """An app whose one agent feeds ``fold``; ``revoke`` is called when partitions are revoked, before others get them.

    Faust needs a ``folder``, and keeps nothing of value in it.
    """
    app = App(
        settings.consumer_group,
        **faust_arguments(settings),
        datadir=str(folder),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        # Topics are made by `provision` alone; Faust would create missing ones with settings of its own.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        # Static membership: a killed worker gets its partitions back in 2 s, not after its session (60 s in Faust).
        consumer_group_instance_id=settings.instance_id,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_MS,
        broker_session_timeout=settings.session_seconds,
        # Seven heartbeats may be lost before the session ends. A worker learns that it has to take over another one's
        # partitions from the answer to its next heartbeat.
        broker_heartbeat_interval=settings.session_seconds / 8,
        # Faust refuses to start where a session may last longer than a request.
        broker_request_timeout=max(40.0, settings.session_seconds + 10),
        broker_commit_interval=COMMIT_SECONDS,
        consumer_max_fetch_size=1024 * 1024,
        broker_max_poll_records=_RUN_RECORDS,
        stream_buffer_maxsize=_BUFFERED_RUNS,
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
        TableManager=NoTables,
    )
    # Faust takes the class of its consumer from the transport; the app has no setting for it.
    app.transport.Consumer = RunConsumer
    topic = app.topic(DECISIONS.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def fold_decisions(stream: StreamT[bytes]) -> None:
        await fold(records(app, stream))

    # Without a name Faust derives one from the function, and two apps in one process would share their agent.
    app.agent(topic, name="fold-decisions", concurrency=1)(fold_decisions)

    async def on_revoked(_app: App, _revoked: set[Any], **_: Any) -> None:
        await revoke()

    # Not weak: the function is local, and a weak reference to it would be gone when this function returns.
    app.on_partitions_revoked.connect(on_revoked, weak=False)
    return app


async def records(app: App, stream: StreamT[bytes]) -> AsyncIterator[Record]:
    """The stream's records. When a rebalance begins within a run, the rest of it is left out: it is read again."""
    async for event in stream.noack().events():
        message = event.message
        for record in event.value:
            if not app.flow_control.is_active() or message.generation_id != app.consumer_generation_id:
                break
            acknowledge = partial(app.consumer.acknowledge, message.tp, record.offset)
            yield Record(
                record.topic, record.partition, record.offset, record.key, record.value, record.headers,
                record.timestamp, acknowledge,
            )  # fmt: skip


async def positions(app: App) -> dict[int, tuple[int, int]]:
    """By partition of this worker: the committed offset (0 before the first commit) and the end of the log, for which
    the broker is asked. Raises ``KafkaError``, ``TimeoutError``."""
    ends = await app.consumer.highwaters(*app.consumer.assignment())
    return {tp.partition: (committed_offset(app.consumer, tp) or 0, end) for tp, end in ends.items()}


def is_reading(app: App) -> bool:
    """Has the group assigned partitions to this worker, and does it read them?"""
    return bool(app.started and not app.rebalancing and app.flow_control.is_active())


def stop_reading(app: App) -> None:
    """Read no more records. Those that were read can still be acknowledged, and are committed when the app stops."""
    app.flow_control.suspend()
    app.flow_control.clear()
