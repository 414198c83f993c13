"""The Faust app: the only module of the pipeline that knows Faust (0.15.3; what is relied on was read in its source).

- ``noack().events()``: nothing is acknowledged but by us. ``take()`` acknowledges a batch that raised.
- ``stream_wait_empty=False``: else a rebalance waits for attempts that are still open.
- On a rebalance Faust forgets what was acknowledged and not committed, seeks to the committed offsets and gives every
  record a new generation; records of an older one never reach the agent. So all state is dropped when partitions are
  revoked, and read again.
- No tables, no leader topic, no declared topics, no web server.
- ``RunConsumer`` gives Faust a run of records as one message: what Faust does per message costs more than the fold.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from faust import App
from faust.tables.manager import TableManager
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import StreamT
from mode import Service
from mode.utils.futures import maybe_async

from pipeline.settings import Settings
from pipeline.worker.agent import Record
from schemas.topics import DECISIONS

__all__ = ["App", "create_app", "is_reading", "positions", "stop_reading"]

logger = logging.getLogger(__name__)

Fold = Callable[[AsyncIterator[Record]], Awaitable[None]]

COMMIT_SECONDS: Final = 0.5
"""What is acknowledged and not committed is read again after a crash or a rebalance."""
_RUN_RECORDS: Final = 64
"""Of up to 64 KiB each, in one message."""
_BUFFERED_RUNS: Final = 2
"""Before reading pauses."""
_FETCH_WAIT_MS: Final = 100
"""How long a broker holds a fetch that finds nothing. It is sent for the partitions that have been read to the end at
that moment, and while it is held the others are not asked for: Faust's 1.5 s were added to a takeover."""


class ConsumerInLoop(AIOKafkaConsumerThread):  # type: ignore[misc]
    """Faust's keeper of the consumer without the thread that it is made for, and with fetches that come back soon.

    Two threads of one interpreter that both have work pass its lock to and fro, and each call from one to the other
    wakes an event loop twice: a fifth of all that the worker used. What the thread is for, heartbeats while a stream
    computes, a loop gives as well that is never held for long: a run of records is a fetch of a MiB at most, and is
    folded in well below a tenth of the shortest session.
    """

    wait_for_shutdown = False

    def __init__(self, consumer: Any, *, loop: asyncio.AbstractEventLoop | None, **options: Any) -> None:
        super().__init__(consumer, loop=loop, thread_loop=loop or asyncio.get_event_loop(), **options)

    start, maybe_start, stop = Service.start, Service.maybe_start, Service.stop
    _stopped_set, _stop_children = Service._stopped_set, Service._stop_children
    _stop_futures, _stop_exit_stacks = Service._stop_futures, Service._stop_exit_stacks

    async def on_stop(self) -> None:
        if self._consumer is not None:
            await self._consumer.stop()

    async def call_thread(self, call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        return await maybe_async(call(*args, **options))

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = _FETCH_WAIT_MS
        return consumer


class NoTables(TableManager):  # type: ignore[misc]
    """Faust's table manager sleeps a second before it starts, so that tables can be added meanwhile."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


class RunConsumer(Consumer):  # type: ignore[misc]
    """Faust's consumer, with one message for all records of a partition that were fetched together.

    A message passes four tasks, a queue and the sensors, whatever its size. Here its value is a run of records, and it
    counts as the last of them. Records are acknowledged one by one, and in their order, so the last
    acknowledged one stands for all before it: neither Faust's search for gaps nor its list of them is needed.

    When all partitions are full Faust sleeps a whole second, in which the stream runs dry; here it sleeps until there
    is room.
    """

    _room: asyncio.Event

    def on_init(self) -> None:
        super().on_init()
        self._room = asyncio.Event()

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return ConsumerInLoop(self, loop=self.loop, beacon=self.beacon)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:  # noqa: ASYNC109 - Faust's signature
        found, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if found and not self.flow_active and not self.should_stop:
            await self._take_back()
        for tp, run in (found or {}).items():
            if self.should_stop or not self.flow_active or self.app.consumer_generation_id != generation:
                return
            if active is None or tp in active or tp in self._buffered_partitions:
                self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
                yield tp, self._message(tp, run)

    async def _take_back(self) -> None:
        """What was fetched while the flow was stopped is fetched again, from what is committed."""
        try:
            await self.perform_seek()
        except Exception as error:  # noqa: BLE001 - a rebalance is going on, which seeks too
            logger.warning("could not seek back to what is committed: %r", error)

    def _message(self, tp: Any, run: Sequence[Any]) -> Any:
        message = self._to_message(tp, run[-1])
        message.value, message.headers = run, None
        return message

    def acknowledge(self, tp: Any, offset: int) -> None:
        """Of a partition no offset before the one of an earlier call."""
        self._acked[tp].append(offset)

    def _new_offset(self, tp: Any) -> int | None:
        acknowledged = self._acked.pop(tp, None)
        return max(acknowledged) + 1 if acknowledged else None

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Offsets between two messages: the rest of a run, or records that the log has not any more."""

    def on_buffer_full(self, tp: Any) -> None:
        super().on_buffer_full(tp)
        self._room.clear()

    def on_buffer_drop(self, tp: Any) -> None:
        super().on_buffer_drop(tp)
        self._room.set()

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
        consumer_max_fetch_size=1024 * 1024,
        broker_max_poll_records=_RUN_RECORDS,
        stream_buffer_maxsize=_BUFFERED_RUNS,
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
        TableManager=NoTables,
    )
    app.transport.Consumer = RunConsumer
    topic = app.topic(DECISIONS.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def fold_decisions(stream: StreamT[bytes]) -> None:
        await fold(records(app, stream))

    app.agent(topic, name="fold-decisions", concurrency=1)(fold_decisions)

    async def on_revoked(_app: App, _revoked: set[Any], **_: Any) -> None:
        forget()

    app.on_partitions_revoked.connect(on_revoked, weak=False)
    return app


async def records(app: App, stream: StreamT[bytes]) -> AsyncIterator[Record]:
    """The stream's records; of a run that a rebalance overtakes the rest is left out, as it will be read again."""
    async for event in stream.noack().events():
        message = event.message
        for record in event.value:
            if not app.flow_control.is_active() or message.generation_id != app.consumer_generation_id:
                break
            acknowledge = partial(app.consumer.acknowledge, message.tp, record.offset)
            yield Record(
                record.topic, record.partition, record.offset, record.key, record.value, record.headers, acknowledge
            )


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
