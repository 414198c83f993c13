"""The Faust app, and overrides of Faust's internals. Only this module knows Faust (0.15.3; its traps below were read in
its source).

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

The overrides use private names of Faust, mode and aiokafka, whose versions are pinned (docs/decisions/0002);
tests/contract/test_library_internals.py names what to read again when a pin moves. ``RunConsumer`` gives Faust a run of
records as one message: what Faust does per message costs more than folding it.
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

from pipeline.settings import WorkerSettings
from runtime.kafka.consumer import METADATA_MS, TopicPartition, stop
from runtime.kafka.faust_connection import build_faust_arguments
from runtime.kafka.record import Record
from schemas.topics import DECISIONS

logger = logging.getLogger(__name__)

_FETCH_WAIT_MS: Final = 100
"""Time that a broker holds a fetch that finds nothing. While it holds one for partitions that were read to their end,
the others are not fetched: Faust's 1.5 s were added to every takeover."""


class ConsumerInLoop(AIOKafkaConsumerThread):  # type: ignore[misc]
    """Faust's service around the aiokafka consumer, without its thread, and with short fetches.

    Two busy threads of one interpreter pass its lock to and fro, and each call from one to the other wakes an event
    loop twice: a fifth of the CPU that the worker used. Faust has the thread for heartbeats while a stream computes.
    Our loop is never held for long enough to miss one: a run of records is a fetch of a MiB at most, and is folded in
    well below a tenth of the shortest session.
    """

    wait_for_shutdown = False

    def __init__(self, consumer: Any, *, loop: asyncio.AbstractEventLoop | None, **options: Any) -> None:
        super().__init__(consumer, loop=loop, thread_loop=loop or asyncio.get_event_loop(), **options)

    start, maybe_start, stop = Service.start, Service.maybe_start, Service.stop
    _stopped_set, _stop_children = Service._stopped_set, Service._stop_children
    _stop_futures, _stop_exit_stacks = Service._stop_futures, Service._stop_exit_stacks

    async def on_stop(self) -> None:
        # A stop during the start: the consumer may not exist yet.
        if self._consumer is not None:
            await stop(self._consumer)

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

    While the buffers of all partitions are full Faust sleeps for a second, in which the stream runs out of records;
    here it sleeps until one of them has space.
    """

    _has_space: asyncio.Event

    def on_init(self) -> None:
        super().on_init()
        self._has_space = asyncio.Event()

    def _new_consumer_thread(self) -> AIOKafkaConsumerThread:
        return ConsumerInLoop(self, loop=self.loop, beacon=self.beacon)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:  # noqa: ASYNC109 - Faust's signature
        runs, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if runs and not self.flow_active and not self.should_stop:
            await self._take_back()
        for tp, run in (runs or {}).items():
            if self.should_stop or not self.flow_active or self.app.consumer_generation_id != generation:
                return
            if active is None or tp in active or tp in self._buffered_partitions:
                self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
                yield tp, self._build_message(tp, run)

    async def _take_back(self) -> None:
        """Seek to the committed offsets: what was fetched while the flow was stopped is fetched again."""
        try:
            await self.perform_seek()
        except Exception as error:  # noqa: BLE001 - a rebalance is under way, which seeks too
            logger.warning("could not seek back to what is committed: %r", error)

    def _build_message(self, tp: Any, run: Sequence[Any]) -> Any:
        message = self._to_message(tp, run[-1])
        # Each record of the run has headers of its own, which `iterate_records` hands out.
        message.value, message.headers = run, None
        return message

    def acknowledge(self, tp: Any, offset: int) -> None:
        """Acknowledge all records up to this one. Calls of a partition come in the order of offsets."""
        self._acked[tp].append(offset)

    def _new_offset(self, tp: Any) -> int | None:
        # Taken out before the commit: if that fails, the next acknowledgement commits all the same, or the records are
        # read again.
        acknowledged = self._acked.pop(tp, None)
        # A committed offset is that of the next record to read.
        return max(acknowledged) + 1 if acknowledged else None

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Ignore the gap: offsets between two messages belong to a run, or to records that the log no longer has."""

    def on_buffer_full(self, tp: Any) -> None:
        super().on_buffer_full(tp)
        self._has_space.clear()

    def on_buffer_drop(self, tp: Any) -> None:
        super().on_buffer_drop(tp)
        self._has_space.set()

    async def _wait_next_records(self, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's signature
        if self.flow_active and self._buffered_partitions and not self._get_active_partitions():
            # Not without an end: a stop or a rebalance may begin while all buffers are full.
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._has_space.wait()
        return await super()._wait_next_records(timeout)


def get_committed_offset(consumer: Any, tp: Any) -> int | None:
    """Return the offset that the group has committed, by this consumer's knowledge; None before the first commit."""
    offset: int | None = consumer._committed_offset[tp]
    return offset


__all__ = ["App", "create_app", "fetch_group_positions", "fetch_positions", "is_reading", "stop_reading"]

Fold = Callable[[AsyncIterator[Record]], Awaitable[None]]

COMMIT_SECONDS: Final = 0.5
"""Records that were acknowledged after the last commit are read again after a crash or a rebalance."""
_RUN_RECORDS: Final = 64
"""Most records in one message; each has up to 64 KiB."""
_BUFFERED_RUNS: Final = 2
"""Messages that wait for the agent before reading pauses."""


def create_app(
    settings: WorkerSettings, member: str, folder: Path, fold: Fold, revoke: Callable[[], Awaitable[None]]
) -> App:
    """Create an app whose one agent feeds ``fold``; it calls ``revoke`` before revoked partitions go to other workers.

    Faust needs a ``folder``, and keeps nothing of value in it.
    """
    app = App(
        settings.consumer_group,
        **build_faust_arguments(settings),
        datadir=str(folder),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        # Only `provision` creates topics; Faust would create missing ones with settings of its own.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        # Static membership: a killed worker gets its partitions back in 2 s, not after its session (60 s in Faust).
        # With the number of partitions: to a member that returns Kafka gives its old partitions, and nobody would read
        # those that were added while it was away.
        consumer_group_instance_id=member,
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
        await fold(iterate_records(app, stream))

    # Without a name Faust derives one from the function, and two apps in one process would share their agent.
    app.agent(topic, name="fold-decisions", concurrency=1)(fold_decisions)

    async def on_revoked(_app: App, _revoked: set[Any], **_: Any) -> None:
        await revoke()

    # Not weak: the function is local, and a weak reference to it would be gone when this function returns.
    app.on_partitions_revoked.connect(on_revoked, weak=False)
    return app


async def iterate_records(app: App, stream: StreamT[bytes]) -> AsyncIterator[Record]:
    """Yield the stream's records. A rebalance that begins within a run drops its remainder, which is read again."""
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


async def fetch_positions(app: App) -> dict[int, tuple[int, int]]:
    """Fetch by partition of this worker the committed offset (0 before the first commit) and the end of the log.

    The end comes from the broker. Raises ``KafkaError``, ``TimeoutError``.
    """
    ends = await app.consumer.highwaters(*app.consumer.assignment())
    return {tp.partition: (get_committed_offset(app.consumer, tp) or 0, end) for tp, end in ends.items()}


async def fetch_group_positions(app: App) -> dict[int, tuple[int, int]]:
    """Fetch the same of every partition of decisions, also of those that no worker reads.

    Raises ``KafkaError``, ``TimeoutError``.
    """
    consumer = app.consumer._thread._ensure_consumer()
    numbers = consumer.partitions_for_topic(DECISIONS.name) or ()
    partitions = [TopicPartition(DECISIONS.name, number) for number in numbers]
    ends = await consumer.end_offsets(partitions)
    committed = await consumer._coordinator.fetch_committed_offsets(partitions)
    return {tp.partition: (committed[tp].offset if tp in committed else 0, end) for tp, end in ends.items()}


def is_reading(app: App) -> bool:
    """Tell whether the group has assigned partitions to this worker, and it reads them."""
    return bool(app.started and not app.rebalancing and app.flow_control.is_active())


def stop_reading(app: App) -> None:
    """Read no more records. The app can still acknowledge what it has read, and commits that when it stops."""
    app.flow_control.suspend()
    app.flow_control.clear()
