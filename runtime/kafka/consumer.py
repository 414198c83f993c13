"""Consumers without Faust: read as long as the process lives, over broken connections, or once to the end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

from runtime.backoff import Backoff
from runtime.kafka.errors import UNAVAILABLE, CommitFailedError, IllegalStateError, KafkaError, explain_kafka_error
from runtime.kafka.security import build_client_arguments
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import end

__all__ = [
    "TopicPartition",
    "commit",
    "commit_until",
    "connected",
    "create_consumer",
    "followed",
    "keep_reconnecting",
    "on_assignment",
    "read_to_end",
    "stop",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_PAUSE_SECONDS: Final = 10.0
METADATA_MS: Final = 10_000
"""Longest age, in milliseconds, of a consumer's knowledge of the leaders of partitions. The client looks up the
beginning of a partition at the leader that it remembers, and does not ask for a new leader after a change: with the
default of five minutes, every partition of that broker stood still for as long.
"""
POLL_MS: Final = 500
ASK_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
"""Seconds after which silent brokers count as away. Busy ones may take seconds to answer."""
CANCEL_AGAIN_SECONDS: Final = 0.5

Consumer = Any
"""An ``AIOKafkaConsumer``, which has no types."""


def create_consumer(
    kafka: KafkaConnection,
    *topics: str,
    group: str | None = None,
    session_seconds: float | None = None,
    **options: Any,
) -> Consumer:
    """Create a consumer that is not started yet, begins with the oldest record, and commits only on request.

    Without a group it reads all partitions and remembers no position. ``session_seconds`` without a heartbeat the group
    gives its partitions to others; None: the client's default.
    """
    if session_seconds is not None:
        session_ms = int(session_seconds * 1000)
        # Three heartbeats may be lost before the session ends.
        options |= {"session_timeout_ms": session_ms, "heartbeat_interval_ms": session_ms // 4}
    return AIOKafkaConsumer(
        *topics,
        **build_client_arguments(kafka),
        group_id=group,
        # The client's own commits run on a timer: they would cover records that were fetched and not processed yet.
        enable_auto_commit=False,
        # The client's default is "latest", by which a group without offsets skips what was written before its first
        # start.
        auto_offset_reset="earliest",
        metadata_max_age_ms=METADATA_MS,
        **options,
    )


@asynccontextmanager
async def connected(consumer: Consumer) -> AsyncIterator[Consumer]:
    """The consumer, started; it is stopped at the end, also when it could not start. Raises ``KafkaError``."""
    try:
        # Within the `try`: a start that fails has already opened connections and tasks, which only `stop` ends.
        await consumer.start()
        yield consumer
    finally:
        await stop(consumer)


async def stop(consumer: Consumer) -> None:
    """Stop the consumer, and return when its connections are closed. Raises ``KafkaError``."""
    stopping: asyncio.Task[None] = asyncio.create_task(consumer.stop())
    while not (await asyncio.wait({stopping}, timeout=CANCEL_AGAIN_SECONDS))[0]:
        # After a change of partitions, the client's fetching task takes the cancellation for that of a fetch which it
        # cancels itself, and fetches on; `stop` would wait without a limit.
        if (fetcher := consumer._fetcher) and fetcher._closed:
            fetcher._fetch_task.cancel()
    if not stopping.cancelled():
        stopping.result()
        return
    # A fetch that has failed and waits for its next try is cancelled, and then `stop` itself ends as cancelled, before
    # it has closed the connections. The caller was not cancelled.
    await consumer._client.close()


class Connection:
    """Connection of a process to Kafka, as metrics and probes show it: ``is_up`` while the brokers answer."""

    def __init__(self, longest_pause_seconds: float = LONGEST_PAUSE_SECONDS) -> None:
        self.backoff = Backoff("Kafka", longest_pause_seconds)
        self.is_up = False

    def note_contact(self) -> None:
        """Note that a session can read. The session calls this itself."""
        self.backoff.note_success()
        self.is_up = True

    def describe_wait(self) -> str:
        """Describe the missing connection as a check of readiness; empty while it is up."""
        return "" if self.is_up else self.backoff.describe_wait() or "waiting for Kafka"

    async def wait_after_failure(self, error: Exception) -> None:
        """Wait until it is time for another try."""
        self.is_up = False
        await self.backoff.wait_after_failure(explain_kafka_error(error))

    async def ask(self, question: Awaitable[T]) -> T | None:
        """Return the brokers' answer; None while they have none, and then the connection is not up."""
        try:
            answer = await _await_answer(question)
        except UNAVAILABLE as error:
            self.is_up = False
            self.backoff.note(explain_kafka_error(error))
            return None
        self.note_contact()
        return answer

    async def watch(self, consumer: Consumer) -> NoReturn:
        """Ask the brokers every few seconds, until cancelled: while they are away, the client returns no records and no
        error."""
        while True:
            await asyncio.sleep(ASK_SECONDS)
            await self.ask(consumer.end_offsets(consumer.assignment()))


async def _await_answer(question: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await question
    except TimeoutError as error:
        raise TimeoutError(f"no answer for {ANSWER_SECONDS:.0f} s") from error


@asynccontextmanager
async def followed(consumer: Consumer, connection: Connection) -> AsyncIterator[Consumer]:
    """The consumer, started, as ``connected`` yields it; ``connection`` is up as long as the brokers answer."""
    async with connected(consumer):
        connection.note_contact()
        watching = asyncio.create_task(connection.watch(consumer))
        try:
            yield consumer
        finally:
            await end([watching])


async def keep_reconnecting(session: Callable[[], Awaitable[None]], connection: Connection) -> None:
    """Keep running ``session``, which opens a consumer itself, until cancelled: again whenever Kafka fails.

    A session begins at the commit of the session before, so a failure loses nothing.
    """
    while True:
        try:
            await session()
        # Any other error, such as NotProvisionedError, ends the process: waiting does not cure it.
        except (KafkaError, OSError) as error:
            await connection.wait_after_failure(error)


async def commit(consumer: Consumer, processed: Mapping[TopicPartition, Sequence[Any]]) -> None:
    """Commit the offsets behind these records with ``commit_until``."""
    await commit_until(consumer, {partition: records[-1].offset + 1 for partition, records in processed.items()})


async def commit_until(consumer: Consumer, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit that everything before these offsets is processed. After a reassignment of a partition it commits nothing:
    the new owner reads the records again. Raises ``KafkaError``.
    """
    try:
        await consumer.commit(dict(offsets))
    except (CommitFailedError, IllegalStateError) as error:
        logger.info("partitions were reassigned before the commit; their new owner reads the records again: %s", error)


async def read_to_end(consumer: Consumer) -> AsyncIterator[Any]:
    """Yield every record from the consumer's position to the present end of its partitions. Raises ``KafkaError``."""
    # Read once: on a topic that is being written to, the end moves as fast as the reader.
    ends = await consumer.end_offsets(consumer.assignment())
    # By position and not by counting records: offsets may have gaps, where records expired.
    while any([await consumer.position(partition) < end for partition, end in ends.items()]):
        for partition, records in (await consumer.getmany(timeout_ms=POLL_MS)).items():
            for record in records:
                # A fetch may return records that were appended after the ends were read.
                if record.offset < ends[partition]:
                    yield record


class _OnAssignment(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def on_partitions_revoked(self, revoked: object) -> None:
        """Forget unacknowledged records: the process that gets the partition reads them again."""

    def on_partitions_assigned(self, assigned: object) -> None:  # noqa: ARG002 - the base class names it so
        self._call()


def on_assignment(call: Callable[[], None]) -> ConsumerRebalanceListener:
    """Create a listener that calls back each time that the group gives this consumer partitions."""
    return _OnAssignment(call)
