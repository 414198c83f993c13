"""Consumer of the attempts topic: reads a bounded number of its last records into memory, then every new one.

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
from api.memory.latest_attempts import LatestAttempts, Taken
from runtime.backoff import draw_backoff_seconds
from runtime.errors import NotProvisionedError
from runtime.kafka.consumer import connected, create_consumer
from runtime.kafka.errors import UNAVAILABLE, explain_kafka_error
from runtime.kafka.record import identify_attempt, identify_record
from runtime.kafka.topics import require
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from runtime.telemetry.spans import NO_TRACING, Tracing
from schemas.codec.records import Rejected, decode
from schemas.codec.trace_context import trace_of
from schemas.events import SCHEDULER, AttemptRepeated, AttemptSummarized, build_pod_key
from schemas.topics import ATTEMPTS

ObserveDelay = Callable[[str, float], None]
"""Observes the source of an attempt, and the seconds from its latest event to now."""
ARCHIVE_SECONDS: Final = 3600.0
"""Age from which attempts of a log count as archived, because it was read long after it was written. Attempts that the
scheduler itself reports are late at any age.
"""


def measure_decision_delay(event: AttemptSummarized | AttemptRepeated, now: float) -> tuple[str, float] | None:
    """Measure the seconds since the attempt's latest event, with the source that reported it; None for an archived log.

    ``now`` is Unix time in seconds.
    """
    # A summary in parts counts once, with its last part.
    if isinstance(event, AttemptSummarized) and event.part + 1 < event.parts:
        return None
    source = event.reports[0].source if event.reports else ""
    # A version is the time of the latest event. Clocks differ: a delay is never negative.
    seconds = max(now - event.version / 1_000_000, 0.0)
    return None if source != SCHEDULER and seconds > ARCHIVE_SECONDS else (source, seconds)


log = logging.getLogger(__name__)

_SPAN: Final = f"remember {ATTEMPTS.name}"
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
    """Progress on the topic; for readiness, metrics, and the lookup of attempts."""

    replayed: bool = False
    """True once all records that the topic had at the start have been read."""
    trouble: str = ""
    """Reason why the topic can't be read; empty while it can, and before the first try."""
    lag_records: int = 0
    """Number of unread records on the topic."""
    records: int = 0
    """Number of records read."""
    rejected: int = 0
    """Number of records read that are not attempts."""
    answered_at: float = field(default=float("-inf"))
    """Time of the brokers' last answer, in seconds of the monotonic clock."""

    def is_following(self, now: float) -> bool:
        """Tell whether memory is as current as the topic at ``now``, in seconds of the monotonic clock."""
        return self.replayed and not self.trouble and now - self.answered_at < CURRENT_SECONDS


class AttemptsTopic:
    """Consumer that fills ``latest``. ``max_records`` bounds the replay, over all partitions."""

    def __init__(
        self,
        kafka: KafkaConnection,
        latest: LatestAttempts,
        max_records: int,
        observe_delay: ObserveDelay,
        tracing: Tracing = NO_TRACING,
        changes: ChangeLog | None = None,
    ) -> None:
        """Fill ``latest``, and append every change to ``changes``."""
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
                self._note(f"Kafka at {self._kafka} does not answer ({explain_kafka_error(error)})"[:500])
            # Also after a session that ended by itself: partitions were added, or the brokers were silent.
            await asyncio.sleep(next(waits))

    @staticmethod
    def _iterate_pauses() -> Iterator[float]:
        return draw_backoff_seconds(Random(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)  # noqa: S311 - no secret depends on it

    def _note(self, trouble: str) -> None:
        self._trouble.note(trouble)
        self.state.trouble = trouble

    async def _run_session(self) -> None:
        # With auto.create.topics.enable a request for the metadata of one topic creates it; a request for all topics
        # does not.
        async with connected(self._create_consumer()) as consumer:
            require([ATTEMPTS.name], await consumer.topics())
        async with connected(self._create_consumer(ATTEMPTS.name)) as consumer:
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
        self.state.lag_records = await self._count_lag(consumer, end)
        self.state.replayed = self.state.replayed or self.state.lag_records == 0

    async def _count_lag(self, consumer: Any, end: Mapping[Any, int]) -> int:
        # The consumer's own position, not the offset of the last record: a transaction marker at the end of a partition
        # has an offset and is not a record.
        positions = {partition: await consumer.position(partition) for partition in end}
        return sum(max(end[partition] - position, 0) for partition, position in positions.items())

    def _trace(self, record: Any, event: AttemptSummarized | AttemptRepeated) -> None:
        """Record a span from the time of the record until answers contain it."""
        parent, began_ns = trace_of(record.headers), 1_000_000 * record.timestamp
        is_whole = isinstance(event, AttemptRepeated) or event.part + 1 == event.parts
        if parent and is_whole:
            self._tracing.begin(_SPAN, parent, identify_attempt(event), kind="consumer", began_ns=began_ns).end()

    async def _take(self, records: Iterable[Any]) -> None:
        """Put ``records`` into memory, and serve requests in between."""
        until = time.monotonic() + SLICE_SECONDS
        for record in records:
            event, taken = take_record(record.value, record.headers, self._latest, self.state, time.time)
            self._changes.read(
                record.partition, record.offset, taken, build_pod_key(event.cluster, event.pod) if event else ""
            )
            if event and self._tracing.is_on and self.state.replayed:
                self._trace(record, event)
            # The replay reads old decisions, whose delay says nothing.
            if event and self.state.replayed and (delay := measure_decision_delay(event, time.time())):
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
    """Put one record into memory and return it with its change; count and skip a record that is no attempt.

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
        extra=identify_record(headers),
    )
    return None, None
