"""From the spool to Kafka: one task, in order, at least once.

The checkpoint moves on after the acknowledgements of a whole batch. Kafka may be away for hours: the spool grows, and
sending goes on where it stopped. Ids are derived, so what is sent twice is seen once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from scheduler.metrics import Metrics
from scheduler.publish.spool.frames import Entry
from scheduler.publish.spool.spool import Batch, Spool
from schemas.ids import microseconds
from schemas.topics import DECISIONS, NODES, PODS

log = logging.getLogger(__name__)

TOPICS: Final = (DECISIONS, PODS, NODES)
SILENCE_SECONDS: Final = 10.0
"""Without an acknowledgement for so long the log says that Kafka does not answer."""
GIVE_UP_SECONDS: Final = 300.0
"""And after so long a new producer looks the brokers up anew: they may have moved."""
FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 15.0
STOP_SECONDS: Final = 2.0


class NotReadyError(Exception):
    """Kafka can't take our records yet; the text says what is missing and what to do."""


class Publisher:
    """`run` is the task. `problem` says in words why nothing is being sent; empty while it goes well."""

    def __init__(
        self,
        spool: Spool,
        bootstrap_servers: str,
        clock: Callable[[], datetime],
        metrics: Metrics,
        connect: Callable[[str], Any] | None = None,
    ) -> None:
        """`connect` makes a producer that was not started yet: an `AIOKafkaProducer`, or what plays one."""
        self._spool, self._servers, self._clock, self._metrics = spool, bootstrap_servers, clock, metrics
        self._connect = connect or idempotent_producer
        self.problem = "not connected yet"
        self._pause = FIRST_PAUSE

    async def run(self) -> None:
        """Send for ever. Each failure that a producer does not survive is answered with a new producer."""
        while True:
            try:
                await self._session()
            except (KafkaError, NotReadyError, OSError) as error:
                self._note_failure(
                    str(error) if isinstance(error, NotReadyError) else f"{type(error).__name__}: {error}"
                )
            except Exception as error:
                log.exception("publishing failed in a way that is not foreseen; it is tried again")
                self._note_failure(f"{type(error).__name__}: {error}")
            self._spool.rewind()
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * 2, LONGEST_PAUSE)

    async def _session(self) -> None:
        """One producer's life: until it fails."""
        producer = self._connect(self._servers)
        try:
            await producer.start()
            await self._require_topics(producer)
            while True:
                await self._send(producer, await self._next_batch())
        finally:
            # A producer that can't reach Kafka would wait for ever to flush; the spool has what it did not send.
            with contextlib.suppress(TimeoutError, KafkaError):
                await asyncio.wait_for(_stop(producer), STOP_SECONDS)

    async def _require_topics(self, producer: Any) -> None:
        # Asking for all topics creates none, where asking for one by name might, with the broker's defaults.
        cluster = await producer.client.fetch_all_metadata()
        if absent := [topic.name for topic in TOPICS if topic.name not in cluster.topics()]:
            raise NotReadyError(f"no topic {', '.join(absent)} at {self._servers}: run `python -m pipeline provision`")

    async def _next_batch(self) -> Batch:
        while (batch := self._spool.next_batch()) is None:
            self._spool.arrived.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._spool.arrived.wait(), 1.0)
            self._spool.retry_disk()
        return batch

    async def _send(self, producer: Any, batch: Batch) -> None:
        waiting = [future for entry in batch.entries if (future := await self._hand_over(producer, entry))]
        done = asyncio.gather(*waiting, return_exceptions=True)
        try:
            await asyncio.wait_for(asyncio.shield(done), SILENCE_SECONDS)
        except TimeoutError:
            # An idempotent producer tries again by itself, in order, for as long as it takes.
            self._say(f"no acknowledgement from {self._servers} for {SILENCE_SECONDS:.0f} s")
            await asyncio.wait_for(done, GIVE_UP_SECONDS)
        for failure in done.result():
            if isinstance(failure, BaseException):
                raise failure
        self._spool.acknowledge(batch)
        self._note_sent(batch)

    async def _hand_over(self, producer: Any, entry: Entry) -> "asyncio.Future[Any] | None":
        record = entry.record
        try:
            future: asyncio.Future[Any] = await producer.send(
                entry.topic, record.value, key=record.key, headers=record.headers
            )
        except MessageSizeTooLargeError:
            log.exception("record %s of %d bytes is too big for Kafka and is lost", entry.ce_id, len(record.value))
            self._metrics.unsendable.inc()
            return None
        return future

    def _note_sent(self, batch: Batch) -> None:
        self._metrics.published.inc(len(batch.entries))
        self._metrics.publish_lag.set(max((microseconds(self._clock()) - batch.entries[-1].written_at_us) / 1e6, 0))
        self._pause = FIRST_PAUSE
        if self.problem:
            log.info("sending to Kafka at %s", self._servers)
        self.problem = ""

    def _note_failure(self, problem: str) -> None:
        self._metrics.publish_failures.inc()
        self._say(problem)

    def _say(self, problem: str) -> None:
        """Once for each change: an hour without Kafka is one line."""
        if problem != self.problem:
            log.warning("decisions wait in the spool (%d bytes): %s", self._spool.unsent_bytes, problem)
        self.problem = problem

    async def drain(self, seconds: float) -> None:
        """Return when the spool is sent, or after the time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._spool.unsent_bytes:
                    self._spool.acknowledged.clear()
                    await self._spool.acknowledged.wait()


def idempotent_producer(bootstrap_servers: str) -> Any:
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap_servers,
        client_id="schedulerlog-scheduler",
        acks="all",
        enable_idempotence=True,
        compression_type="zstd",
        linger_ms=5,
        max_batch_size=512 * 1024,
        max_request_size=DECISIONS.max_message_bytes,
        request_timeout_ms=30_000,
        retry_backoff_ms=200,
    )


async def _stop(producer: Any) -> None:
    await producer.stop()
