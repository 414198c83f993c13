"""A consumer stops, whatever it does at that moment."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dev import embedded
from runtime.kafka.consumer import Consumer, TopicPartition, create_consumer, stop
from runtime.settings.kafka_connection import build_kafka_connection
from tests.support.backends import Addresses
from tests.support.waiting import eventually_async

TOPIC = "stopped.consumers"


async def test_it_stops_in_the_moment_in_which_its_partitions_change(backends: Addresses) -> None:
    consumer = await _start_fetching(backends.bootstrap_servers)
    # The client cancels the fetch that is under way when it has another partition.
    consumer.assign([TopicPartition(TOPIC, 1)])
    stopping = asyncio.create_task(stop(consumer))
    # Not `asyncio.timeout`: a cancellation is what is lost, and this one would end the wait instead.
    ended, _ = await asyncio.wait({stopping}, timeout=60)
    stopping.cancel()
    assert ended


async def test_who_stops_one_whose_fetch_waits_for_its_next_try_is_not_cancelled(
    own_backends: Callable[[], embedded.Backends],
) -> None:
    servers = own_backends()
    consumer = await _start_fetching(servers.bootstrap_servers, retry_backoff_ms=30_000)
    servers.kafka[0].kill()
    # Now the fetch fails, and waits before it tries again.
    await eventually_async(lambda: not consumer._client._conns)
    await asyncio.sleep(0.5)
    # Raises CancelledError otherwise, which ended the worker.
    await stop(consumer)
    assert consumer._client._sync_task is None, "the client is not closed"


async def _start_fetching(servers: str, **options: Any) -> Consumer:
    """Return a consumer of which a fetch is under way."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)])
    await admin.close()
    consumer = create_consumer(build_kafka_connection(servers), **options)
    await consumer.start()
    consumer.assign([TopicPartition(TOPIC, 0)])
    await consumer.getmany(timeout_ms=300)
    return consumer
