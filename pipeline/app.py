"""The Faust app: the only module that knows Faust (0.15.3; what is relied on was read in its source).

- ``noack().events()``: nothing is acknowledged but by us. ``take()`` acknowledges a batch that raised.
- ``stream_wait_empty=False``: else a rebalance waits for attempts that are still open.
- On a rebalance Faust forgets what was acknowledged and not committed, seeks to the committed offsets and gives every
  record a new generation; records of an older one never reach the agent. So all state is dropped when partitions are
  revoked, and read again.
- No tables, no leader topic, no declared topics, no web server.
- ``PromptConsumer`` takes two of its waits away: together they cost more than the fold.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from faust import App
from faust.transport.drivers.aiokafka import Consumer
from faust.types import StreamT
from mode.services import WaitResults
from mode.utils.queues import ThrowableQueue

from pipeline.decisions import Record
from pipeline.settings import Settings
from schemas.topics import DECISIONS

__all__ = ["App", "create_app", "is_reading", "positions", "stop_reading"]

Fold = Callable[[AsyncIterator[Record]], Awaitable[None]]

COMMIT_SECONDS: Final = 0.5
"""What is acknowledged and not committed is read again after a crash or a rebalance."""
_BUFFERED_RECORDS: Final = 256
"""Of up to 64 KiB each, before reading pauses."""


class PromptConsumer(Consumer):  # type: ignore[misc]
    """Faust's consumer without the waiting that nobody needs.

    For every record Faust makes four tasks, to hear of a rebalance while it hands the record to a stream that may have
    no room; with room and no rebalance, handing over waits for nothing. And when all partitions are full it sleeps a
    whole second, in which the stream runs dry; here it sleeps until there is room.
    """

    outbox: ThrowableQueue[Any] | None = None
    """The queue of the one agent, once it has begun to read."""
    _room: asyncio.Event

    def on_init(self) -> None:
        super().on_init()
        self._room = asyncio.Event()

    def on_buffer_full(self, tp: Any) -> None:
        super().on_buffer_full(tp)
        self._room.clear()

    def on_buffer_drop(self, tp: Any) -> None:
        super().on_buffer_drop(tp)
        self._room.set()

    async def wait_first(self, *waits: Any, timeout: Any = None) -> Any:  # noqa: ASYNC109 - Faust's signature
        if len(waits) != 2 or timeout is not None or not self._hands_over_at_once():
            return await super().wait_first(*waits, timeout=timeout)
        handing_over, suspended = waits
        suspended.close()
        return WaitResults([handing_over], [await handing_over], False)

    def _hands_over_at_once(self) -> bool:
        is_flowing = self.flow_active and self.app.flow_control.is_active() and not self.should_stop
        return is_flowing and self.outbox is not None and not self.outbox.full()

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's signature
        if self.flow_active and self._buffered_partitions and not self._get_active_partitions():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._room.wait(), timeout)
        return await super()._wait_next_records(timeout)


def create_app(settings: Settings, folder: Path, fold: Fold, forget: Callable[[], None]) -> App:
    """An app whose one agent feeds ``fold``; ``forget`` is called when partitions are taken away.

    ``folder`` is where Faust insists on having a folder; nothing of worth is in it.
    """
    app = App(
        settings.consumer_group,
        broker=[f"kafka://{server.strip()}" for server in settings.kafka_bootstrap_servers.split(",")],
        datadir=str(folder),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        consumer_group_instance_id=settings.instance_id,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=settings.session_timeout_seconds,
        broker_heartbeat_interval=settings.session_timeout_seconds / 4,
        broker_request_timeout=max(40.0, settings.session_timeout_seconds + 10),
        broker_commit_interval=COMMIT_SECONDS,
        consumer_max_fetch_size=256 * 1024,
        broker_max_poll_records=_BUFFERED_RECORDS // 8,
        stream_buffer_maxsize=_BUFFERED_RECORDS,
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
    )
    app.transport.Consumer = PromptConsumer
    topic = app.topic(DECISIONS.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def fold_decisions(stream: StreamT[bytes]) -> None:
        app.consumer.outbox = stream.channel.queue
        await fold(records(app, stream))

    app.agent(topic, name="fold-decisions", concurrency=1)(fold_decisions)

    async def on_revoked(_app: App, _revoked: set[Any], **_: Any) -> None:
        forget()

    app.on_partitions_revoked.connect(on_revoked, weak=False)
    return app


async def records(app: App, stream: StreamT[bytes]) -> AsyncIterator[Record]:
    """The stream's records; the bytes are let go of by Faust, which keeps what is not acknowledged yet."""
    async for event in stream.noack().events():
        message = event.message
        value, message.value = message.value, None
        acknowledge = _acknowledge(app, message)
        yield Record(
            message.topic, message.partition, message.offset, message.key, value, message.headers or (), acknowledge
        )


def _acknowledge(app: App, message: Any) -> Callable[[], object]:
    return lambda: message.ack(app.consumer)


def positions(app: App) -> dict[int, tuple[int, int]]:
    """Per partition that this worker has: the committed offset (0 before the first) and the end of the log."""
    found = {}
    for tp in app.consumer.assignment():
        committed = app.consumer._committed_offset[tp]
        found[tp.partition] = (committed or 0, app.consumer.highwater(tp) or 0)
    return found


def is_reading(app: App) -> bool:
    """Has the group told this worker what it reads, and does it read?"""
    return bool(app.started and not app.rebalancing and app.flow_control.is_active())


def stop_reading(app: App) -> None:
    """Take no more records; what was read can still be acknowledged and is committed when the app stops."""
    app.flow_control.suspend()
    app.flow_control.clear()
