"""Reader of topics without a group: of partitions from their beginning to their end, and of records by offset."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from runtime.backoff import Backoff
from runtime.kafka.consumer import Consumer, TopicPartition, connected, create_consumer, read_to_end, stop
from runtime.kafka.errors import UNAVAILABLE, explain_kafka_error
from runtime.settings.kafka_connection import KafkaConnection

T = TypeVar("T")

ANSWER_SECONDS: Final = 60.0
"""Seconds after which the reader begins a read again with a new consumer."""
_FETCH_WAIT_MS: Final = 10
"""Milliseconds that a broker holds a fetch that finds nothing. While it is held for partitions that were read to their
end, the others are not fetched."""
_FETCH_BYTES: Final = 128 * 1024
"""Size of a fetch by offset: two records of the greatest size. The client's MiB would be decoded for one record."""

_NEAR: Final = 20
"""Records between two offsets that are read in one fetch."""


class TopicReader:
    """Reader that waits while the broker does not answer. For one caller at a time."""

    def __init__(self, kafka: KafkaConnection, max_backoff_seconds: float = 10.0) -> None:
        self._kafka = kafka
        self._backoff = Backoff("Kafka", max_backoff_seconds)
        self._consumer: Consumer = None

    @property
    def is_waiting(self) -> bool:
        """Tell whether the reader waits for the broker."""
        return self._backoff.is_waiting

    @property
    def waiting(self) -> Backoff:
        """Awaited service, and how long the reader has been waiting for it."""
        return self._backoff

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(*UNAVAILABLE):
                await stop(consumer)

    async def read_all(self, topic: str, partitions: Iterable[int], take: Callable[[Any], None]) -> None:
        """Give ``take`` every record of the partitions, in their order; all of them again after a failure."""
        wanted = [TopicPartition(topic, number) for number in sorted(partitions)]

        async def read() -> None:
            async with connected(create_consumer(self._kafka, fetch_max_wait_ms=_FETCH_WAIT_MS)) as consumer:
                consumer.assign(wanted)
                await consumer.seek_to_beginning()
                async for record in read_to_end(consumer):
                    take(record)

        await self._retry(read)

    async def read_offsets(self, topic: str, partition: int, offsets: Sequence[int]) -> list[Any]:
        """Read the records at these offsets, which rise; records that the log no longer has are left out."""

        async def read() -> list[Any]:
            if self._consumer is None:
                self._consumer = create_consumer(
                    self._kafka, max_partition_fetch_bytes=_FETCH_BYTES, fetch_max_wait_ms=_FETCH_WAIT_MS
                )
                await self._consumer.start()
            return await _fetch_records(self._consumer, TopicPartition(topic, partition), offsets)

        return await self._retry(read)

    async def _retry(self, read: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await read()
            except UNAVAILABLE as error:
                await self.close()
                await self._backoff.wait_after_failure(explain_kafka_error(error))
            else:
                self._backoff.note_success()
                return answer


async def _fetch_records(consumer: Consumer, partition: TopicPartition, offsets: Sequence[int]) -> list[Any]:
    consumer.assign([partition])
    try:
        log_end = (await consumer.end_offsets([partition]))[partition]
        fetched: list[Any] = []
        for run in _split_into_runs(offsets):
            # Of a topic that was deleted and created again, the client would wait without an end for offsets behind it.
            end = min(run[-1] + 1, log_end)
            consumer.seek(partition, run[0])
            # The client skips expired records and continues with the oldest one.
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    fetched += [record for record in records if record.offset in run]
        return fetched
    finally:
        # Otherwise the client would fetch the following records, which nobody reads.
        consumer.unsubscribe()


def _split_into_runs(offsets: Sequence[int]) -> Iterator[list[int]]:
    """Split rising offsets where reading on would take longer than another fetch."""
    run: list[int] = []
    for offset in offsets:
        if run and offset - run[-1] > _NEAR:
            yield run
            run = []
        run.append(offset)
    if run:
        yield run
