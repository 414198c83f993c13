"""Reads the attempts topic into memory: first a bounded number of its last records, then every new one.

There is no consumer group: every API process reads all partitions, and keeps its offsets only while it runs. Reading a
record twice changes nothing, so a new session may begin earlier than necessary.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from api.memory.change_log import ChangeLog
from api.memory.decision_delay import ObserveDelay, decision_delay
from api.memory.latest_attempts import LatestAttempts, Taken
from runtime.backoff import backoff_seconds
from runtime.errors import NotProvisionedError
from runtime.kafka.consumer import connected, new_consumer
from runtime.kafka.errors import UNAVAILABLE, explained
from runtime.kafka.record import about_attempt, about_record
from runtime.kafka.topics import require
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.codec.records import Rejected, decode
from schemas.codec.trace_context import trace_of
from schemas.events import AttemptRepeated, AttemptSummarized, pod_key
from schemas.topics import ATTEMPTS

log = logging.getLogger(__name__)

_SPAN: Final = f"remember {ATTEMPTS.name}"
POLL_MS: Final = 250
MAX_POLL_RECORDS: Final = 500
SLICE_SECONDS: Final = 0.005
"""How long records are decoded before the event loop may serve waiting requests."""
LAG_CHECK_SECONDS: Final = 2.0
REPLAY_LAG_CHECK_SECONDS: Final = 0.1
"""During the replay, so that the process is ready soon after its end."""
SESSION_TIMEOUT_SECONDS: Final = 60.0
"""A session in which the brokers do not answer for so long is closed, and a new one opened with fresh metadata."""
CURRENT_SECONDS: Final = 10.0
"""Memory counts as current for so long after the last answer of the brokers."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(slots=True)
class TopicState:
    """How far the topic has been read; for readiness, metrics, and the lookup of attempts."""

    replayed: bool = False
    """True once everything that was on the topic at the start has been read."""
    trouble: str = ""
    """Why the topic can't be read; empty while it can, and before the first try."""
    lag_records: int = 0
    """Records on the topic that are not read yet."""
    records: int = 0
    """Records read."""
    rejected: int = 0
    """How many of these records are not attempts."""
    answered_at: float = field(default=float("-inf"))
    """When the brokers last answered, in seconds of the monotonic clock."""

    def is_following(self, now: float) -> bool:
        """Is memory as current as the topic at ``now``, in seconds of the monotonic clock?"""
        return self.replayed and not self.trouble and now - self.answered_at < CURRENT_SECONDS


class AttemptsTopic:
    """Fills ``latest`` from the topic. ``max_records`` bounds the replay, all partitions together."""

    def __init__(
        self,
        kafka: KafkaConnection,
        latest: LatestAttempts,
        max_records: int,
        observe_delay: ObserveDelay,
        tracing: Tracing = NO_TRACING,
        changes: ChangeLog | None = None,
    ) -> None:
        """``changes``: what else gets every change."""
        self._tracing = tracing
        self._changes = ChangeLog(0, 0) if changes is None else changes
        self.state = TopicState()
        self._observe_delay = observe_delay
        self._kafka = kafka
        self._latest = latest
        self._max_records = max_records
        self._positions: dict[Any, int] = {}
        self._trouble = LoggedProblem(
            partial(log.warning, "attempts topic: %s; trying again"),
            lambda _: log.info("attempts topic: connected again"),
        )

    async def follow(self) -> None:
        """Read until cancelled. A failure is logged once, and the session is opened again after a pause."""
        waits = self._pauses()
        while True:
            try:
                await self._session()
                waits = self._pauses()
            except NotProvisionedError as error:
                # The brokers answer, so the pauses need not grow.
                self._note(str(error))
                waits = self._pauses()
            except UNAVAILABLE as error:
                self._note(f"Kafka at {self._kafka} does not answer ({explained(error)})"[:500])
            # After a session that ended by itself as well: partitions were added, or the brokers were silent.
            await asyncio.sleep(next(waits))

    @staticmethod
    def _pauses() -> Iterator[float]:
        return backoff_seconds(Random(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret depends on it

    def _note(self, trouble: str) -> None:
        self._trouble.note(trouble)
        self.state.trouble = trouble

    async def _session(self) -> None:
        # With auto.create.topics.enable a request for the metadata of one topic creates it; a request for all topics
        # does not.
        async with connected(self._consumer()) as consumer:
            require([ATTEMPTS.name], await consumer.topics())
        async with connected(self._consumer(ATTEMPTS.name)) as consumer:
            await self._seek(consumer)
            await self._read(consumer)

    def _consumer(self, *topics: str) -> Any:
        # Its metadata is renewed every few seconds: partitions that were added are found only with it.
        return new_consumer(self._kafka, *topics, request_timeout_ms=10_000)

    async def _seek(self, consumer: Any) -> None:
        partitions = consumer.assignment()
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        share = -(-self._max_records // max(len(partitions), 1))  # rounded up
        jumped = set()
        for partition in partitions:
            # A session after the first continues where the one before it stopped, unless retention has deleted those
            # records, or the topic was created again.
            offset = self._positions.get(partition, -1)
            if not first[partition] <= offset <= end[partition]:
                offset = max(first[partition], end[partition] - share)
                jumped.add(partition.partition)
            consumer.seek(partition, offset)
            self._positions[partition] = offset
        self._changes.begin({partition.partition: self._positions[partition] for partition in partitions}, jumped)

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
            self._note(f"Kafka at {self._kafka} does not answer ({type(error).__name__})")
            return
        self._note("")
        self.state.answered_at = time.monotonic()
        self.state.lag_records = await self._lag(consumer, end)
        self.state.replayed = self.state.replayed or self.state.lag_records == 0

    async def _lag(self, consumer: Any, end: Mapping[Any, int]) -> int:
        # The consumer's own position, not the offset of the last record: a transaction marker at the end of a partition
        # has an offset and is not a record.
        positions = {partition: await consumer.position(partition) for partition in end}
        return sum(max(end[partition] - position, 0) for partition, position in positions.items())

    def _trace(self, record: Any, event: AttemptSummarized | AttemptRepeated) -> None:
        """A span from the time of the record until requests are answered with it."""
        parent, began_ns = trace_of(record.headers), 1_000_000 * record.timestamp
        is_whole = isinstance(event, AttemptRepeated) or event.part + 1 == event.parts
        if parent and is_whole:
            self._tracing.begin(_SPAN, parent, about_attempt(event), kind="consumer", began_ns=began_ns).end()

    async def _take(self, records: Iterable[Any]) -> None:
        """Put ``records`` into memory; requests are served in between."""
        until = time.monotonic() + SLICE_SECONDS
        for record in records:
            event, taken = take_record(record.value, record.headers, self._latest, self.state, time.time)
            self._changes.read(
                record.partition, record.offset, taken, pod_key(event.cluster, event.pod) if event else ""
            )
            if event and self._tracing.is_on and self.state.replayed:
                self._trace(record, event)
            # What the replay reads was decided long ago.
            if event and self.state.replayed and (delay := decision_delay(event, time.time())):
                self._observe_delay(*delay)
            if time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + SLICE_SECONDS


def take_record(
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
    latest: LatestAttempts,
    state: TopicState,
    clock: Callable[[], float],
) -> tuple[AttemptSummarized | AttemptRepeated | None, Taken | None]:
    """Put one record into memory and return it, with what it changed; one that is no attempt is counted and skipped.

    ``clock`` returns Unix time in seconds.
    """
    state.records += 1
    event = decode(value, headers)
    if isinstance(event, AttemptSummarized) and value is not None:
        return event, latest.add(event, value, clock())
    if isinstance(event, AttemptRepeated):
        return event, latest.add_retry(event, clock())
    state.rejected += 1
    log.debug(
        "attempts topic: skipped a record, not an attempt: %s",
        event if isinstance(event, Rejected) else event.TYPE,
        extra=about_record(headers),
    )
    return None, None
