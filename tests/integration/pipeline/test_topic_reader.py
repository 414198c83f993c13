"""Records are read by their offsets, and partitions as a whole, also where the log has lost some of them."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from runtime.kafka.reader import TopicReader
from runtime.settings.kafka_connection import build_kafka_connection
from tests.support.harness.pipeline_process import Pipeline

TOPIC = "read.by.offset"


def test_records_are_read_by_offset_and_as_a_whole(provisioned: Pipeline) -> None:
    provisioned.recreate_topic(TOPIC, partitions=2, configuration={})
    asyncio.run(_read(provisioned.servers.bootstrap_servers))


def test_records_far_from_each_other_are_read_by_offset(provisioned: Pipeline) -> None:
    provisioned.recreate_topic(TOPIC, partitions=1, configuration={})
    asyncio.run(_read_far(provisioned.servers.bootstrap_servers))


async def _read_far(servers: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(300):
            await producer.send(TOPIC, b"%d" % number, partition=0)
    reader = TopicReader(build_kafka_connection(servers))
    try:
        for offsets in ([0, 299], [5, 7, 100, 101, 250], [*range(0, 300, 20)], [*range(0, 300, 21)]):
            assert _list_values(await reader.read_offsets(TOPIC, 0, offsets)) == offsets
        assert _list_values(await reader.read_offsets(TOPIC, 0, [10, 200, 400])) == [10, 200]
    finally:
        await reader.close()


async def _read(servers: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(20):
            await producer.send_and_wait(TOPIC, b"%d" % number, partition=number % 2)
    reader = TopicReader(build_kafka_connection(servers))
    try:
        # Partition 1 has the odd numbers.
        assert _list_values(await reader.read_offsets(TOPIC, 1, [2, 3, 9])) == [5, 7, 19]
        assert _list_values(await reader.read_offsets(TOPIC, 0, [0])) == [0]
        assert _list_values(await reader.read_offsets(TOPIC, 1, [9, 10, 11])) == [19]
        assert await reader.read_offsets(TOPIC, 1, [50]) == []
        await _delete_before(servers, TopicPartition(TOPIC, 1), 4)
        assert _list_values(await reader.read_offsets(TOPIC, 1, [2, 3, 9])) == [19]
        assert await reader.read_offsets(TOPIC, 1, [1]) == []
        records: list[Any] = []
        await reader.read_all(TOPIC, [0, 1], records.append)
        assert [_list_values(r for r in records if r.partition == number) for number in (0, 1)] == [
            list(range(0, 20, 2)), list(range(9, 20, 2)),
        ]  # fmt: skip
    finally:
        await reader.close()


def _list_values(records: Any) -> list[int]:
    return [int(record.value) for record in records]


async def _delete_before(servers: str, partition: TopicPartition, offset: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.delete_records({partition: RecordsToDelete(before_offset=offset)})
    finally:
        await admin.close()
