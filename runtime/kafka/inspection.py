"""Present state of Kafka: brokers, topics, their configuration, and positions of groups. Changes nothing."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import UnknownTopicOrPartitionError

from runtime.kafka.consumer import TopicPartition, connected, create_consumer
from runtime.kafka.errors import KafkaError
from runtime.kafka.security import build_client_arguments
from runtime.kafka.topics import administration, list_partitions
from runtime.settings.kafka_connection import KafkaConnection


@dataclass(frozen=True, slots=True)
class TopicAsItIs:
    partitions: int
    replicas: int
    """The count of the partition that has fewest."""
    in_sync: int
    """The count of the partition that has fewest."""
    configuration: Mapping[str, str] | None
    """Settings by name; None if this user may not describe them."""


@dataclass(frozen=True, slots=True)
class KafkaAsItIs:
    brokers: int
    topics: Mapping[str, TopicAsItIs]
    unseen: frozenset[str] = field(default_factory=frozenset)
    """Topics that this user may not describe, whether they are there or not."""


async def inspect(kafka: KafkaConnection, names: Collection[str]) -> KafkaAsItIs:
    """Read the brokers, and the topics of these names. Raises ``KafkaError``, ``OSError``, ``SettingError``."""
    admin = AIOKafkaAdminClient(**build_client_arguments(kafka))
    try:
        await admin.start()
        brokers = len((await admin.describe_cluster())["brokers"])
        # Not by their names: the client's request for a name lets a broker create the topic.
        described = [topic for topic in await admin.describe_topics() if topic["topic"] in names]
        answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    finally:
        await admin.close()
    # Of a resource: error, message, type, name, entries; an entry begins with name and value.
    resources = {resource[3]: resource for answer in answers for resource in answer.resources}
    configurations = {
        name: {entry[0]: entry[1] for entry in resource[4]} for name, resource in resources.items() if not resource[0]
    }
    missing = {name for name, resource in resources.items() if resource[0] == UnknownTopicOrPartitionError.errno}
    topics = {
        topic["topic"]: TopicAsItIs(
            len(topic["partitions"]),
            min(len(partition["replicas"]) for partition in topic["partitions"]),
            min(len(partition["isr"]) for partition in topic["partitions"]),
            configurations.get(topic["topic"]),
        )
        for topic in described
        if not topic["error_code"]
    }
    return KafkaAsItIs(brokers, topics, frozenset(names) - topics.keys() - missing)


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


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records of a topic that a group has left to read."""

    group: str
    topic: str
    records: int
    """Offsets behind the committed ones; of a compacted topic fewer records may be left."""
    late_records: int
    """Number of them that were written before the time that was asked about."""


async def read_backlogs(
    kafka: KafkaConnection, group_prefix: str, topics: Collection[str], late_before: datetime
) -> list[Backlog]:
    """Read how far the groups of that prefix have read these topics, by group and topic; without those that this user
    may not describe. Raises ``KafkaError``, ``OSError``."""
    async with administration(kafka) as admin:
        groups = [name for name, _ in await admin.list_consumer_groups() if name.startswith(group_prefix)]
        committed = {group: await admin.list_consumer_group_offsets(group) for group in groups}
    read = {partition for offsets in committed.values() for partition in offsets if partition.topic in topics}
    if not read:
        return []
    async with connected(create_consumer(kafka)) as consumer:
        ends = await consumer.end_offsets(list(read))
        moment_ms = int(late_before.timestamp() * 1000)
        recent = await consumer.offsets_for_times(dict.fromkeys(read, moment_ms))
    counts: defaultdict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for group, offsets in committed.items():
        for partition, position in offsets.items():
            if partition in read:
                # None: nothing was written since that time.
                late_end = recent[partition].offset if recent[partition] else ends[partition]
                left, late = (max(end - max(position.offset, 0), 0) for end in (ends[partition], late_end))
                before = counts[group, partition.topic]
                counts[group, partition.topic] = before[0] + left, before[1] + late
    return [Backlog(group, topic, *numbers) for (group, topic), numbers in sorted(counts.items())]
