"""Overrides of the internals of Faust, mode and aiokafka, whose private names this module uses.

The versions are pinned (docs/decisions/0002); tests/contract/test_library_internals.py names what to read again when a
pin moves. ``RunConsumer`` gives Faust a run of records as one message: what Faust does per message costs more than
folding it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from faust.tables.manager import TableManager
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from mode import Service
from mode.utils.futures import maybe_async

from runtime.kafka.consumer import stop

logger = logging.getLogger(__name__)

_FETCH_WAIT_MS: Final = 100
"""How long a broker holds a fetch that finds nothing. While it is held for partitions that were read to
their end, the others are not fetched: Faust's 1.5 s were added to every takeover."""


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
        """Seek to the committed offsets: what was fetched while the flow was stopped is fetched again."""
        try:
            await self.perform_seek()
        except Exception as error:  # noqa: BLE001 - a rebalance is under way, which seeks too
            logger.warning("could not seek back to what is committed: %r", error)

    def _message(self, tp: Any, run: Sequence[Any]) -> Any:
        message = self._to_message(tp, run[-1])
        # Each record of the run has headers of its own; `records` in `faust_app` hands them out.
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
        """Nothing: offsets between two messages are the rest of a run, or records that the log no longer has."""

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


def committed_offset(consumer: Any, tp: Any) -> int | None:
    """The offset that the group has committed, as far as this consumer knows; None before the first commit."""
    found: int | None = consumer._committed_offset[tp]
    return found
