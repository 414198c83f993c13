"""Follower of a topic: reads a bounded number of its last records, then every new one.

There is no consumer group: every API process reads all partitions, and keeps its offsets only while it runs. Reading a
record twice changes nothing, so a new session may begin earlier than necessary.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from runtime.backoff import draw_backoff_seconds
from runtime.errors import NotProvisionedError
from runtime.kafka.consumer import connected, create_consumer
from runtime.kafka.errors import UNAVAILABLE, explain_kafka_error
from runtime.kafka.topics import require
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import Topic

log = logging.getLogger(__name__)

POLL_MS: Final = 250
MAX_POLL_RECORDS: Final = 500
SLICE_SECONDS: Final = 0.005
"""Time of decoding after which the event loop serves waiting requests."""
LAG_CHECK_SECONDS: Final = 2.0
REPLAY_LAG_CHECK_SECONDS: Final = 0.1
"""Interval during the replay: short, so that the process is ready soon after its end."""
SESSION_TIMEOUT_SECONDS: Final = 60.0
"""Silence of the brokers after which a session is closed, and a new one opened with fresh metadata."""
CURRENT_SECONDS: Final = 10.0
"""Time after the last answer of the brokers for which memory counts as current."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(slots=True)
class TopicState:
    """Progress on the topic; for readiness, metrics, lookups and watches."""

    replayed: bool = False
    """True once all records that the topic had at the start have been read."""
    trouble: str = ""
    """Reason why the topic can't be read; empty while it can, and before the first try."""
    lag_records: int = 0
    """Number of unread records on the topic."""
    records: int = 0
    """Number of records read."""
    rejected: int = 0
    """Number of records read that are not of the topic."""
    answered_at: float = field(default=float("-inf"))
    """Time of the brokers' last answer, in seconds of the monotonic clock."""

    @property
    def is_read(self) -> bool:
        """Read as far as it can be: what it had at the start is in memory, or nothing of it can be read now."""
        return self.replayed or bool(self.trouble)

    def is_following(self, now: float) -> bool:
        """Tell whether memory is as current as the topic at ``now``, in seconds of the monotonic clock."""
        return self.replayed and not self.trouble and now - self.answered_at < CURRENT_SECONDS


class TopicFollower:
    """Consumer of a topic. ``max_records`` bounds the replay, over all partitions."""

    def __init__(self, kafka: KafkaConnection, topic: Topic, max_records: int) -> None:
        """Follow ``topic`` from its last records on."""
        self.state = TopicState()
        self._kafka, self._topic, self._max_records = kafka, topic, max_records
        self._positions: dict[Any, int] = {}
        name = topic.name.rpartition(".")[2]
        self._trouble = LoggedProblem(
            partial(log.warning, f"{name} topic: %s; trying again"),
            lambda _: log.info("%s topic: connected again", name),
        )

    def begin(self, offsets: Mapping[int, int], jumped: Collection[int]) -> None:
        """Begin a session at ``offsets``; in the partitions ``jumped`` it does not continue the previous session."""
        raise NotImplementedError

    def take(self, record: Any) -> None:
        """Take one record."""
        raise NotImplementedError

    async def follow(self) -> None:
        """Read until cancelled; log a failure once, and open a new session after a pause."""
        waits = self._iterate_pauses()
        while True:
            try:
                await self._run_session()
                waits = self._iterate_pauses()
            except NotProvisionedError as error:
                # The brokers answer, so the pauses need not grow.
                self._note(str(error))
                waits = self._iterate_pauses()
            except UNAVAILABLE as error:
                self._note_silence(error)
            # Also after a session that ended by itself: partitions were added, or the brokers were silent.
            await asyncio.sleep(next(waits))

    @staticmethod
    def _iterate_pauses() -> Iterator[float]:
        return draw_backoff_seconds(Random(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret depends on it

    def _note(self, trouble: str) -> None:
        self._trouble.note(trouble)
        self.state.trouble = trouble

    def _note_silence(self, error: Exception) -> None:
        self._note(f"Kafka at {self._kafka} does not answer ({explain_kafka_error(error)})"[:500])

    async def _run_session(self) -> None:
        # With auto.create.topics.enable a request for the metadata of one topic creates it; a request for all topics
        # does not.
        async with connected(self._create_consumer()) as consumer:
            require([self._topic.name], await consumer.topics())
        async with connected(self._create_consumer(self._topic.name)) as consumer:
            await self._seek(consumer)
            await self._read(consumer)

    def _create_consumer(self, *topics: str) -> Any:
        # The consumer renews its metadata every few seconds: only so it finds new partitions.
        return create_consumer(self._kafka, *topics, request_timeout_ms=10_000)

    async def _seek(self, consumer: Any) -> None:
        partitions = consumer.assignment()
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        share = -(-self._max_records // max(len(partitions), 1))  # rounded up
        jumped = set()
        for partition in partitions:
            # A later session continues where the previous one stopped, unless retention has deleted those records, or
            # the topic was created again.
            offset = self._positions.get(partition, -1)
            if not first[partition] <= offset <= end[partition]:
                offset = max(first[partition], end[partition] - share)
                jumped.add(partition.partition)
            consumer.seek(partition, offset)
            self._positions[partition] = offset
        self.begin({partition.partition: self._positions[partition] for partition in partitions}, jumped)

    async def _read(self, consumer: Any) -> None:
        partitions = consumer.assignment()
        self.state.answered_at = time.monotonic()
        checked_at = float("-inf")
        while time.monotonic() - self.state.answered_at < SESSION_TIMEOUT_SECONDS:
            pause = LAG_CHECK_SECONDS if self.state.replayed else REPLAY_LAG_CHECK_SECONDS
            if time.monotonic() - checked_at > pause:
                await self._check_lag(consumer, partitions)
                checked_at = time.monotonic()
            if consumer.assignment() != partitions:
                return  # partitions were added: a new session reads all of them
            polled = await consumer.getmany(timeout_ms=POLL_MS, max_records=MAX_POLL_RECORDS)
            for partition, records in polled.items():
                await self._take(records)
                self._positions[partition] = records[-1].offset + 1

    async def _check_lag(self, consumer: Any, partitions: Iterable[Any]) -> None:
        """Compare the ends of the partitions with what was read.

        Polling alone would not do: aiokafka returns no records, and no error, while the brokers are away.
        """
        try:
            async with asyncio.timeout(CURRENT_SECONDS / 2):
                end = await consumer.end_offsets(partitions)
        except UNAVAILABLE as error:
            self._note_silence(error)
            return
        self._note("")
        self.state.answered_at = time.monotonic()
        self.state.lag_records = await self._count_lag(consumer, end)
        self.state.replayed = self.state.replayed or self.state.lag_records == 0

    async def _count_lag(self, consumer: Any, end: Mapping[Any, int]) -> int:
        # The consumer's own position, not the offset of the last record: a transaction marker at the end of a partition
        # has an offset and is not a record.
        positions = {partition: await consumer.position(partition) for partition in end}
        return sum(max(end[partition] - position, 0) for partition, position in positions.items())

    async def _take(self, records: Iterable[Any]) -> None:
        """Take ``records``, and serve requests in between."""
        until = time.monotonic() + SLICE_SECONDS
        for record in records:
            self.take(record)
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS
