"""Follows the topic of attempts for ever, from a bounded way back, and fills the memory with it.

No consumer group: every API process reads everything, and remembers its own place only while it lives. Reading a record
twice changes nothing, so a new session may always begin earlier than needed.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from api.memory.latest_attempts import LatestAttempts
from schemas.codec.records import Rejected, decode
from schemas.events import AttemptRepeated, AttemptSummarized
from schemas.topics import ATTEMPTS

log = logging.getLogger(__name__)

POLL_MS: Final = 250
BATCH: Final = 500
SLICE_SECONDS: Final = 0.005
"""Records are decoded for so long before waiting requests get their turn."""
HEARTBEAT_SECONDS: Final = 2.0
REPLAY_HEARTBEAT_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 60.0
"""A session that does not hear from the brokers for so long is given up for a new one, with new metadata."""
FRESH_SECONDS: Final = 10.0


@dataclass(slots=True)
class TopicState:
    """How the following goes; read by readiness, metrics and by whoever must know how fresh the memory is."""

    replayed: bool = False
    """True once everything that was on the topic at the start has been read."""
    trouble: str = ""
    """Why nothing can be read at the moment; empty while it can, and before the first try."""
    lag: int = 0
    """Records on the topic that are still to be read."""
    records: int = 0
    rejected: int = 0
    heard: float = field(default=float("-inf"))
    """When the brokers last answered, on the monotonic clock."""

    def is_following(self, now: float) -> bool:
        """Is the memory as fresh as the topic?"""
        return self.replayed and not self.trouble and now - self.heard < FRESH_SECONDS


class TopicMissingError(Exception):
    """The topic is not there yet."""


class AttemptsTopic:
    def __init__(self, bootstrap_servers: str, latest: LatestAttempts, max_records: int) -> None:
        self.state = TopicState()
        self._servers = bootstrap_servers
        self._latest = latest
        self._max_records = max_records
        self._places: dict[Any, int] = {}

    async def follow(self) -> None:
        """Until cancelled. Whatever goes wrong is said once, and tried again."""
        wait_seconds = 0.5
        while True:
            try:
                await self._session()
            except TopicMissingError as error:
                self._note(str(error))
                wait_seconds = 1.0
            except (KafkaError, OSError, TimeoutError) as error:
                self._note(f"Kafka at {self._servers} does not answer ({type(error).__name__}: {error})"[:300])
                wait_seconds = min(wait_seconds * 2, 5.0)
            else:
                wait_seconds = 0.5
            await asyncio.sleep(wait_seconds)

    def _note(self, trouble: str) -> None:
        # Said on a change only: the same sentence twice a second helps nobody.
        if trouble and trouble != self.state.trouble:
            log.warning("attempts topic: %s; trying again", trouble)
        elif self.state.trouble and not trouble:
            log.info("attempts topic: connected again")
        self.state.trouble = trouble

    async def _session(self) -> None:
        await self._check_topic()
        consumer = self._consumer(ATTEMPTS.name)
        await self._start(consumer)
        try:
            await self._seek(consumer)
            await self._read(consumer)
        finally:
            await consumer.stop()

    def _consumer(self, *topics: str) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            *topics,
            bootstrap_servers=self._servers,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=10_000,
            metadata_max_age_ms=30_000,
        )

    async def _start(self, consumer: AIOKafkaConsumer) -> None:
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise

    async def _check_topic(self) -> None:
        # Asking for one topic by its name would create it on brokers that do so; asking for all does not.
        consumer = self._consumer()
        await self._start(consumer)
        try:
            topics = await consumer.topics()
        finally:
            await consumer.stop()
        if ATTEMPTS.name not in topics:
            raise TopicMissingError(f"{ATTEMPTS.name} is missing; `python -m pipeline provision` creates it")

    async def _seek(self, consumer: AIOKafkaConsumer) -> None:
        partitions = consumer.assignment()
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        share = -(-self._max_records // max(len(partitions), 1))
        for partition in partitions:
            place = self._places.get(partition, -1)
            if not first[partition] <= place <= end[partition]:
                place = max(first[partition], end[partition] - share)
            consumer.seek(partition, place)
            self._places[partition] = place

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        partitions = consumer.assignment()
        self.state.heard = time.monotonic()
        beat = float("-inf")
        while time.monotonic() - self.state.heard < PATIENCE_SECONDS:
            if time.monotonic() - beat > (HEARTBEAT_SECONDS if self.state.replayed else REPLAY_HEARTBEAT_SECONDS):
                await self._beat(consumer, partitions)
                beat = time.monotonic()
            if consumer.assignment() != partitions:
                return  # partitions were added: a new session reads all of them
            for partition, records in (await consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH)).items():
                await self._take(records)
                self._places[partition] = records[-1].offset + 1

    async def _beat(self, consumer: AIOKafkaConsumer, partitions: Iterable[Any]) -> None:
        """Ask how far the topic has grown: shows the lag, and that the brokers are there at all."""
        try:
            end = await asyncio.wait_for(consumer.end_offsets(partitions), FRESH_SECONDS / 2)
        except (KafkaError, OSError, TimeoutError) as error:
            self._note(f"Kafka at {self._servers} does not answer ({type(error).__name__})")
            return
        self._note("")
        self.state.heard = time.monotonic()
        self.state.lag = await self._lag(consumer, end)
        self.state.replayed = self.state.replayed or self.state.lag == 0

    async def _lag(self, consumer: AIOKafkaConsumer, end: Mapping[Any, int]) -> int:
        # The consumer's own place, because the last offset of a partition may hold no record.
        places = {partition: await consumer.position(partition) for partition in end}
        return sum(max(end[partition] - place, 0) for partition, place in places.items())

    async def _take(self, records: Iterable[Any]) -> None:
        until = time.monotonic() + SLICE_SECONDS
        for record in records:
            take_record(record.value, record.headers, self._latest, self.state, time.time)
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS


def take_record(
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
    latest: LatestAttempts,
    state: TopicState,
    clock: Callable[[], float],
) -> None:
    """One record into the memory; one that says no attempt is counted and passed over."""
    state.records += 1
    event = decode(value, headers)
    if isinstance(event, AttemptSummarized) and value is not None:
        latest.add(event, value, clock())
        return
    if isinstance(event, AttemptRepeated):
        latest.add_retry(event, clock())
        return
    state.rejected += 1
    log.debug("attempts topic: a record says no attempt: %s", event if isinstance(event, Rejected) else event.TYPE)
