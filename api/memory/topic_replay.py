"""Replay of a topic: read from its beginning at every start, then followed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from runtime.errors import NotProvisionedError
from runtime.kafka.consumer import Connection, connected, create_consumer, keep_reconnecting
from runtime.kafka.topics import require
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import Topic

POLL_MS: Final = 1_000
MAX_POLL_RECORDS: Final = 200
PAUSE_SECONDS: Final = 30.0

log = logging.getLogger(__name__)

Take = Callable[[Sequence[Any]], Awaitable[None]]


async def replay(kafka: KafkaConnection, topic: Topic, take: Take, note_caught_up: Callable[[], None]) -> None:
    """Give ``take`` the records of the topic until cancelled; after a failure, again from the beginning.

    ``note_caught_up``: called once all records that the topic had at the start have been taken.
    """
    connection = Connection()
    while True:
        try:
            await keep_reconnecting(partial(_run_session, kafka, topic, take, note_caught_up, connection), connection)
        except NotProvisionedError as error:
            log.warning("%s: %s; trying again", topic.name, error)
            await asyncio.sleep(PAUSE_SECONDS)


async def _run_session(
    kafka: KafkaConnection, topic: Topic, take: Take, note_caught_up: Callable[[], None], connection: Connection
) -> None:
    # A request for the metadata of one topic may create it.
    async with connected(create_consumer(kafka)) as consumer:
        require([topic.name], await consumer.topics())
    async with connected(create_consumer(kafka, topic.name)) as consumer:
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(consumer.assignment())
        connection.note_contact()
        is_behind = True
        while True:
            polled = await consumer.getmany(timeout_ms=POLL_MS, max_records=MAX_POLL_RECORDS)
            await take([record for records in polled.values() for record in records])
            if is_behind:
                is_behind = any([await consumer.position(partition) < end for partition, end in ends.items()])
                if not is_behind:
                    note_caught_up()
