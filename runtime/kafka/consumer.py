"""Consumers without Faust: read as long as the process lives, over broken connections, or once to the end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

from runtime.backoff import Backoff
from runtime.kafka.errors import UNAVAILABLE, CommitFailedError, IllegalStateError, KafkaError, explained
from runtime.kafka.security import client_arguments
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import end

__all__ = [
    "TopicPartition",
    "commit",
    "commit_until",
    "connected",
    "followed",
    "new_consumer",
    "on_assignment",
    "read_to_end",
    "reconnecting",
    "stop",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_PAUSE_SECONDS: Final = 10.0
METADATA_MS: Final = 10_000
"""Longest age, in milliseconds, of a consumer's knowledge of which broker leads a partition. The client looks up where
a partition begins at the leader that it knows, and does not ask for the new one when that has changed: with its default
of five minutes everything on that broker stood still for as long."""
POLL_MS: Final = 500
ASK_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
"""Brokers that have not answered for so long are waited for. Busy ones may take seconds."""
CANCEL_AGAIN_SECONDS: Final = 0.5

Consumer = Any
"""An ``AIOKafkaConsumer``, which has no types."""


def new_consumer(
    kafka: KafkaConnection,
    *topics: str,
    group: str | None = None,
    session_seconds: float | None = None,
    **options: Any,
) -> Consumer:
    """Create a consumer that is not started yet, begins with the oldest record, and commits only when it is asked to.

    Without a group it reads all partitions and remembers no position. ``session_seconds`` without a heartbeat the group
    gives its partitions to others; None: the client's default.
    """
    if session_seconds is not None:
        session_ms = int(session_seconds * 1000)
        # Three heartbeats may be lost before the session ends.
        options |= {"session_timeout_ms": session_ms, "heartbeat_interval_ms": session_ms // 4}
    return AIOKafkaConsumer(
        *topics,
        **client_arguments(kafka),
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
        # Where partitions were just added or given up, the client's task that fetches takes the cancellation for that
        # of a fetch which it cancels itself, and fetches on; `stop` would wait without a limit.
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

    def established(self) -> None:
        """Note that a session can read. The session calls this itself."""
        self.backoff.worked()
        self.is_up = True

    def waiting_for(self) -> str:
        """Describe the missing connection as a check of readiness; empty while it is up."""
        return "" if self.is_up else self.backoff.waiting_for() or "waiting for Kafka"

    async def failed(self, error: Exception) -> None:
        """Return when it is time for another try."""
        self.is_up = False
        await self.backoff.failed(explained(error))

    async def ask(self, question: Awaitable[T]) -> T | None:
        """Return the brokers' answer; None while they have none, and then the connection is not up."""
        try:
            answer = await _in_time(question)
        except UNAVAILABLE as error:
            self.is_up = False
            self.backoff.note(explained(error))
            return None
        self.established()
        return answer

    async def watch(self, consumer: Consumer) -> NoReturn:
        """Ask the brokers every few seconds, until cancelled: while they are away, the client returns no records and no
        error."""
        while True:
            await asyncio.sleep(ASK_SECONDS)
            await self.ask(consumer.end_offsets(consumer.assignment()))


async def _in_time(question: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await question
    except TimeoutError as error:
        raise TimeoutError(f"no answer for {ANSWER_SECONDS:.0f} s") from error


@asynccontextmanager
async def followed(consumer: Consumer, connection: Connection) -> AsyncIterator[Consumer]:
    """``connected``, for long: ``connection`` is up as long as the brokers answer."""
    async with connected(consumer):
        connection.established()
        watching = asyncio.create_task(connection.watch(consumer))
        try:
            yield consumer
        finally:
            await end([watching])


async def reconnecting(session: Callable[[], Awaitable[None]], connection: Connection) -> None:
    """Run ``session``, which opens a consumer of its own, again whenever Kafka fails; until it is cancelled.

    A session begins where the one before has committed, so a failure loses nothing.
    """
    while True:
        try:
            await session()
        # Any other error, such as NotProvisionedError, ends the process: waiting does not cure it.
        except (KafkaError, OSError) as error:
            await connection.failed(error)


async def commit(consumer: Consumer, processed: Mapping[TopicPartition, Sequence[Any]]) -> None:
    """Commit the offsets behind these records with ``commit_until``."""
    await commit_until(consumer, {partition: records[-1].offset + 1 for partition, records in processed.items()})


async def commit_until(consumer: Consumer, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit that everything before these offsets is processed. Where the group has reassigned a partition, nothing is
    committed: its new owner reads the records again. Raises ``KafkaError``."""
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
