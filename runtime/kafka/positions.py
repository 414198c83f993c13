"""Positions of a group on a topic, and the topic's ends."""

from collections.abc import Iterable

from runtime.kafka.consumer import TopicPartition, connected, new_consumer
from runtime.kafka.errors import KafkaError
from runtime.kafka.topics import administration, partitions_of
from runtime.settings.kafka_connection import KafkaConnection


async def ends_of(kafka: KafkaConnection, topic: str) -> dict[TopicPartition, int]:
    """Return the offset that the next record of each partition will have. Raises ``NotProvisionedError`` where the
    topic is missing; ``KafkaError``, ``OSError``."""
    async with administration(kafka) as admin:
        partitions = await partitions_of(admin, [topic])
    async with connected(new_consumer(kafka)) as consumer:
        ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
        return ends


async def committed_by(
    kafka: KafkaConnection, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets of these partitions, by all its readers; 0 before the first commit. Raises
    ``KafkaError``, ``OSError``, also while the group's coordinator is still loading."""
    wanted = list(partitions)
    async with administration(kafka) as admin:
        found = await admin.list_consumer_group_offsets(group, partitions=wanted)
    # The client ignores the error of the whole answer, which then has no partition at all.
    if unknown := [partition for partition in wanted if partition not in found]:
        raise KafkaError(f"the coordinator of group {group} does not answer for {len(unknown)} partitions")
    return {partition: max(found[partition].offset, 0) for partition in wanted}
