"""Reads the topic of attempts into the memory, from a bounded number of records back and then as they come.

No consumer group: every API process reads everything, and keeps its own positions only while it runs. Reading a record
twice changes nothing, so a new session may always begin earlier than needed.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from api.memory.latest_attempts import LatestAttempts
from broker.consumer import connected, new_consumer
from broker.errors import UNAVAILABLE
from broker.topics import require
from process.backoff import backoff_seconds
from process.errors import NotProvisionedError
from process.log_once import LoggedProblem
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
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(slots=True)
class TopicState:
    """How far reading is; for readiness, metrics, and answers that depend on how fresh the memory is."""

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


class AttemptsTopic:
    def __init__(self, bootstrap_servers: str, latest: LatestAttempts, max_records: int) -> None:
        self.state = TopicState()
        self._servers = bootstrap_servers
        self._latest = latest
        self._max_records = max_records
        self._positions: dict[Any, int] = {}
        self._trouble = LoggedProblem(
            partial(log.warning, "attempts topic: %s; trying again"),
            lambda _: log.info("attempts topic: connected again"),
        )

    async def follow(self) -> None:
        """Read until cancelled. What goes wrong is logged once, and tried again."""
        waits = self._pauses()
        while True:
            try:
                await self._session()
                waits = self._pauses()
            except NotProvisionedError as error:
                # Nothing is wrong with the broker: it is asked again soon.
                self._note(str(error))
                waits = self._pauses()
            except UNAVAILABLE as error:
                self._note(f"Kafka at {self._servers} does not answer ({type(error).__name__}: {error})"[:300])
            await asyncio.sleep(next(waits))

    @staticmethod
    def _pauses() -> Iterator[float]:
        return backoff_seconds(Random(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret depends on it

    def _note(self, trouble: str) -> None:
        self._trouble.note(trouble)
        self.state.trouble = trouble

    async def _session(self) -> None:
        # Asking for one topic by its name would create it on brokers that do so; asking for all does not.
        async with connected(self._consumer()) as consumer:
            require([ATTEMPTS.name], await consumer.topics())
        async with connected(self._consumer(ATTEMPTS.name)) as consumer:
            await self._seek(consumer)
            await self._read(consumer)

    def _consumer(self, *topics: str) -> Any:
        return new_consumer(self._servers, *topics, request_timeout_ms=10_000, metadata_max_age_ms=30_000)

    async def _seek(self, consumer: Any) -> None:
        partitions = consumer.assignment()
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        share = -(-self._max_records // max(len(partitions), 1))
        for partition in partitions:
            offset = self._positions.get(partition, -1)
            if not first[partition] <= offset <= end[partition]:
                offset = max(first[partition], end[partition] - share)
            consumer.seek(partition, offset)
            self._positions[partition] = offset

    async def _read(self, consumer: Any) -> None:
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
                self._positions[partition] = records[-1].offset + 1

    async def _beat(self, consumer: Any, partitions: Iterable[Any]) -> None:
        """Ask how far the topic has grown: shows the lag, and that the brokers are there at all."""
        try:
            end = await asyncio.wait_for(consumer.end_offsets(partitions), FRESH_SECONDS / 2)
        except UNAVAILABLE as error:
            self._note(f"Kafka at {self._servers} does not answer ({type(error).__name__})")
            return
        self._note("")
        self.state.heard = time.monotonic()
        self.state.lag = await self._lag(consumer, end)
        self.state.replayed = self.state.replayed or self.state.lag == 0

    async def _lag(self, consumer: Any, end: Mapping[Any, int]) -> int:
        # The consumer's own position, because the last offset of a partition may hold no record.
        positions = {partition: await consumer.position(partition) for partition in end}
        return sum(max(end[partition] - position, 0) for partition, position in positions.items())

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
    """Put one record into the memory; one that holds no attempt is counted and passed over."""
    state.records += 1
    event = decode(value, headers)
    if isinstance(event, AttemptSummarized) and value is not None:
        latest.add(event, value, clock())
        return
    if isinstance(event, AttemptRepeated):
        latest.add_retry(event, clock())
        return
    state.rejected += 1
    log.debug("attempts topic: a record holds no attempt: %s", event if isinstance(event, Rejected) else event.TYPE)
