"""From the spool to Kafka: one task, in order, at least once.

The checkpoint advances after the acknowledgements of a whole batch. Kafka may be away for hours: the spool grows, and
sending continues where it stopped. Ids are derived, so readers recognize a record that is sent twice.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from runtime.backoff import draw_backoff_seconds
from runtime.errors import NotProvisionedError
from runtime.kafka.errors import KafkaError, explain_kafka_error
from runtime.kafka.producer import (
    count_record_bytes,
    create_idempotent_producer,
    hand_over,
    is_too_large,
    list_broker_topics,
)
from runtime.kafka.record import identify_record
from runtime.kafka.topics import require
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from runtime.telemetry.spans import NO_TRACING, Tracing
from scheduler.metrics import Metrics
from scheduler.publish.spool.frames import Entry
from scheduler.publish.spool.spool import Spool, SpoolBatch
from schemas.codec.oversize import shorten
from schemas.codec.records import decode, encode
from schemas.codec.trace_context import Trace, trace_of, with_trace
from schemas.ids import count_microseconds
from schemas.topics import DECISIONS, NODE_STATES, NODES, PODS, SCHEDULERS

log = logging.getLogger(__name__)

TOPICS: Final = (DECISIONS, PODS, NODES, NODE_STATES, SCHEDULERS)
SILENCE_SECONDS: Final = 10.0
"""Time without an acknowledgement after which the log says that Kafka does not answer."""
GIVE_UP_SECONDS: Final = 300.0
"""Seconds without an acknowledgement until a new producer looks the brokers up again: they may have moved."""
LOOK_SECONDS: Final = 1.0
"""Pause between two tries of the disk while no call comes."""
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 15.0
STOP_SECONDS: Final = 2.0


class Publisher:
    """`run` is the task. `problem` says in words why nothing is being sent; empty while records are sent."""

    def __init__(
        self,
        spool: Spool,
        kafka: KafkaConnection,
        clock: Callable[[], datetime],
        metrics: Metrics,
        connect: Callable[[KafkaConnection], Any] | None = None,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        """Take `connect`, which makes a producer that is not started yet: an `AIOKafkaProducer`, or a fake of one."""
        self._tracing = tracing
        self._spool, self._kafka, self._clock, self._metrics = spool, kafka, clock, metrics
        self._connect = connect or _create_producer
        self._trouble = LoggedProblem(
            partial(log.warning, "decisions wait in the spool: %s (%d bytes)"),
            lambda *_: log.info("sending to Kafka at %s", self._kafka),
            text="not connected yet",
        )
        self._start_pauses()

    @property
    def problem(self) -> str:
        return self._trouble.text

    def _start_pauses(self) -> None:
        self._pauses = draw_backoff_seconds(Random(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret depends on it

    async def run(self) -> None:
        """Send until cancelled. After each failure that a producer does not survive a new producer is made."""
        while True:
            try:
                await self._run_session()
            except NotProvisionedError as error:
                self._note_failure(str(error))
            except (KafkaError, OSError) as error:
                self._note_failure(explain_kafka_error(error))
            except Exception as error:
                log.exception("publishing failed in a way that is not foreseen; it is tried again")
                self._note_failure(f"{type(error).__name__}: {error}")
            # Part of the batch may be in Kafka already; it is sent again with the same ids.
            self._spool.rewind()
            await asyncio.sleep(next(self._pauses))

    async def _run_session(self) -> None:
        """Run one producer until it fails."""
        producer = self._connect(self._kafka)
        try:
            await producer.start()
            require([topic.name for topic in TOPICS], await list_broker_topics(producer))
            while True:
                await self._send(producer, await self._await_batch())
        finally:
            # A producer that can't reach Kafka never finishes its flush; the spool has what it did not send. Whatever
            # its end raises would take the place of what ends the session, which may be the end of this task.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(STOP_SECONDS):
                    await producer.stop()

    async def _await_batch(self) -> SpoolBatch:
        while (batch := self._spool.take_batch()) is None:
            # No await since the spool was found empty, so no arrival is overlooked.
            self._spool.arrived.clear()
            with contextlib.suppress(TimeoutError):
                # What waits in memory needs `retry_disk` also while no call comes.
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._spool.arrived.wait()
            self._spool.retry_disk()
        return batch

    async def _send(self, producer: Any, batch: SpoolBatch) -> None:
        waiting = [future for entry in batch.entries if (future := await self._hand_over(producer, entry))]
        # All of them end before the first failure is raised: a batch is acknowledged as a whole or sent again.
        done = asyncio.gather(*waiting, return_exceptions=True)
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                # An idempotent producer tries again by itself, in order, for as long as it takes.
                while not (await asyncio.wait([done], timeout=SILENCE_SECONDS))[0]:
                    silence = TimeoutError(f"no acknowledgement from {self._kafka} for {SILENCE_SECONDS:.0f} s")
                    # Each time: a broker that was away may be back and refuse us.
                    self._note(explain_kafka_error(silence))
        except TimeoutError:
            done.cancel()
            raise
        for failure in done.result():
            if isinstance(failure, asyncio.CancelledError):
                # Raised as it is, it would end this task as if it were the one that is cancelled.
                raise ConnectionAbortedError("the producer has given a record up")
            if isinstance(failure, BaseException):
                raise failure
        self._spool.acknowledge(batch)
        self._note_sent(batch)

    async def _hand_over(self, producer: Any, entry: Entry) -> "asyncio.Future[Any] | None":
        if not is_too_large(entry.record):
            return await hand_over(producer, entry.record)
        # Kafka would refuse it again each time, and everything behind it would wait.
        log.error(
            "record %s of %d bytes is too large for %s and is lost",
            entry.ce_id,
            count_record_bytes(entry.record),
            entry.topic,
            extra=identify_record(entry.record.headers),
        )
        self._metrics.unsendable.inc()
        instead = shorten(decode(entry.record.value, entry.record.headers))
        if not instead:
            return None
        record = with_trace(encode(instead, entry.topic), trace_of(entry.record.headers))
        return await hand_over(producer, record)

    def _trace(self, entries: Sequence[Entry]) -> None:
        """Trace each trace that records belong to, with a span from the spool to Kafka's acknowledgement."""
        written_us: dict[Trace, int] = {}
        for entry in entries:
            if parent := trace_of(entry.record.headers):
                written_us.setdefault(parent, entry.written_at_us)
        for parent, began_us in written_us.items():
            self._tracing.begin(f"publish {DECISIONS.name}", parent, kind="producer", began_ns=1_000 * began_us).end()

    def _note_sent(self, batch: SpoolBatch) -> None:
        if self._tracing.is_on:
            self._trace(batch.entries)
        self._metrics.published.inc(len(batch.entries))
        self._metrics.publish_lag.set(
            max((count_microseconds(self._clock()) - batch.entries[-1].written_at_us) / 1e6, 0)
        )
        if self.problem:
            self._start_pauses()
        self._trouble.note("")

    def _note_failure(self, problem: str) -> None:
        self._metrics.publish_failures.inc()
        self._note(problem)

    def _note(self, problem: str) -> None:
        self._trouble.note(problem, self._spool.unsent_bytes)

    async def drain(self, seconds: float) -> None:
        """Return when the spool is sent, or after the time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._spool.unsent_bytes:
                    self._spool.acknowledged.clear()
                    await self._spool.acknowledged.wait()


def _create_producer(kafka: KafkaConnection) -> Any:
    return create_idempotent_producer(kafka, DECISIONS.max_message_bytes, client_id="schedulerlog-scheduler")
