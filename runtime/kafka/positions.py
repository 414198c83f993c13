"""Positions of a group on a topic, and the topic's ends."""

from collections.abc import Iterable

from runtime.kafka.consumer import TopicPartition, connected, create_consumer
from runtime.kafka.errors import KafkaError
from runtime.kafka.topics import administration, list_partitions
from runtime.settings.kafka_connection import KafkaConnection


async def read_end_offsets(kafka: KafkaConnection, topic: str) -> dict[TopicPartition, int]:
    """Return the offset that the next record of each partition will have. Raises ``NotProvisionedError`` where the
    topic is missing; ``KafkaError``, ``OSError``."""
    async with administration(kafka) as admin:
        partitions = await list_partitions(admin, [topic])
    async with connected(create_consumer(kafka)) as consumer:
        ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
        return ends


async def read_committed_offsets(
    kafka: KafkaConnection, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets of these partitions, by all its readers; 0 before the first commit. Raises
    ``KafkaError``, ``OSError``, also while the group's coordinator is still loading."""
    wanted = list(partitions)
    async with administration(kafka) as admin:
        offsets = await admin.list_consumer_group_offsets(group, partitions=wanted)
    # The client ignores an error of the answer, which then has no partition at all.
    if unknown := [partition for partition in wanted if partition not in offsets]:
        raise KafkaError(f"the coordinator of group {group} does not answer for {len(unknown)} partitions")
    return {partition: max(offsets[partition].offset, 0) for partition in wanted}
