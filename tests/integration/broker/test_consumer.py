"""A consumer stops, whatever it does at that moment."""

import asyncio

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from broker.consumer import TopicPartition, new_consumer, stop
from process.configuration.kafka_connection import kafka_at
from tests.support.backends import Addresses

TOPIC = "stopped.consumers"


async def test_it_stops_in_the_moment_in_which_its_partitions_change(backends: Addresses) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=backends.bootstrap_servers)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)])
    await admin.close()
    consumer = new_consumer(kafka_at(backends.bootstrap_servers))
    await consumer.start()
    consumer.assign([TopicPartition(TOPIC, 0)])
    # Now a fetch is under way, which the client cancels when it has another partition.
    await consumer.getmany(timeout_ms=300)
    consumer.assign([TopicPartition(TOPIC, 1)])
    stopping = asyncio.create_task(stop(consumer))
    # Not `asyncio.timeout`: a cancellation is what is lost, and this one would end the wait instead.
    ended, _ = await asyncio.wait({stopping}, timeout=60)
    stopping.cancel()
    assert ended
