"""Probe of a broker's real work: it creates a topic, takes a record and gives it back.

The only module here that knows aiokafka (docs/decisions/0027-embedded-servers-have-their-own-client.md).
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, for_code

PROBE_PREFIX: Final = "embedded-probe-"
# A probe that hangs must end before the deadline of the start (``server.START_SECONDS``), so that it is tried again.
_PROBE_MS: Final = 10_000


async def probe(bootstrap_server: str, node: int, cluster_id: str | None = None) -> None:
    """Create a topic on this very broker, write a record, read it back, delete the topic.

    With ``cluster_id``, another Kafka that has taken the port meanwhile does not count.

    Raises KafkaError or TimeoutError as long as one of these is not possible.
    """
    topic = f"{PROBE_PREFIX}{uuid.uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_server, request_timeout_ms=_PROBE_MS)
    async with asyncio.timeout(_PROBE_MS / 1000), _started(admin):
        if cluster_id and (await admin.describe_cluster())["cluster_id"] != cluster_id:
            raise KafkaError(f"{bootstrap_server} is another cluster than {cluster_id}")
        await _create(admin, topic, node)
        try:
            await _write_and_read(bootstrap_server, topic)
        finally:
            await admin.delete_topics([topic])


async def _create(admin: Any, topic: str, node: int) -> None:
    # On this broker by name: a topic that is placed anywhere would prove only that some broker works.
    placed = NewTopic(topic, num_partitions=-1, replication_factor=-1, replica_assignments={0: [node]})
    answer = await admin.create_topics([placed], timeout_ms=_PROBE_MS)
    for _, code, *_ in answer.topic_errors:
        if code:
            raise for_code(code)(topic)
    # A producer that asks before the broker knows the topic logs a warning, which looks like a fault.
    while any(topic_found["error_code"] for topic_found in await admin.describe_topics([topic])):  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def _write_and_read(bootstrap_server: str, topic: str) -> None:
    record = uuid.uuid4().bytes
    partition = TopicPartition(topic, 0)
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_server, request_timeout_ms=_PROBE_MS) as producer:
        await producer.send_and_wait(topic, record, partition=0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_server,
        request_timeout_ms=_PROBE_MS,
        # Without a group: the coordinator's own topic need not exist for the broker to be ready.
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.assign([partition])
    async with consumer:
        read = await consumer.getone(partition)
    if read.value != record:
        raise KafkaError(f"wrote {record!r}, read {read.value!r}")


@asynccontextmanager
async def _started(admin: Any) -> AsyncIterator[None]:
    # start() stays outside of the try: close() without a connection would hang.
    await admin.start()
    try:
        yield
    finally:
        await admin.close()


def is_ready(bootstrap_server: str, node: int, cluster_id: str | None = None) -> bool:
    """Tell whether ``probe`` succeeds now. It runs in a thread, because the caller may be inside an event loop."""
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(asyncio.run, probe(bootstrap_server, node, cluster_id)).result()
        except (KafkaError, TimeoutError, OSError):
            return False
    return True
