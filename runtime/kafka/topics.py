"""Topics that Kafka has: creating those of the contract, and correcting their configuration. Safe to run again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from runtime.backoff import Backoff
from runtime.errors import NotProvisionedError
from runtime.kafka.errors import explain_kafka_error
from runtime.kafka.security import build_client_arguments
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import TOPICS, Topic

Say = Callable[[str], None]

_METADATA_SECONDS: Final = 60.0
_MAY_BE_HIDDEN: Final = " (or this user may not see it: docs/security.md lists the rights)"


@asynccontextmanager
async def administration(kafka: KafkaConnection) -> AsyncIterator[AIOKafkaAdminClient]:
    """A connected client for administration. Raises ``KafkaError``, ``OSError``."""
    admin = AIOKafkaAdminClient(**build_client_arguments(kafka))
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


async def list_topic_names(kafka: KafkaConnection) -> list[str]:
    """List all topics that the broker has. Raises ``KafkaError``, ``OSError``."""
    async with administration(kafka) as admin:
        # All topics: a request for one by its name makes a broker with `auto.create.topics.enable` create it.
        return list(await admin.list_topics())


async def wait_for_topics(kafka: KafkaConnection, wanted: Iterable[str], backoff: Backoff) -> Mapping[str, int]:
    """Wait until Kafka answers and has these topics. Returns the number of partitions of every topic.

    Raises ``NotProvisionedError`` if it lacks one, or one has fewer partitions than the topic it is partitioned as.
    """
    while True:
        try:
            async with administration(kafka) as admin:
                # All topics: a request for one by its name makes a broker with `auto.create.topics.enable` create it.
                partition_counts = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
        # A topic that is missing is not retried here: only an operator's `provision` makes it.
        except (KafkaError, OSError) as error:
            await backoff.wait_after_failure(explain_kafka_error(error))
        else:
            backoff.note_success()
            names = list(wanted)
            require(names, partition_counts)
            _require_partitions(names, partition_counts)
            return partition_counts


async def list_partitions(
    admin: AIOKafkaAdminClient, names: Sequence[str], also: Sequence[str] = ()
) -> list[TopicPartition]:
    """List all partitions of the topics ``names``. Raises ``NotProvisionedError`` where one of them, or of ``also``, is
    missing; ``KafkaError``, ``OSError``."""
    topics = {
        description["topic"]: description["partitions"]
        for description in await admin.describe_topics()
        if not description["error_code"]
    }
    require([*names, *also], topics)
    return [TopicPartition(name, partition["partition"]) for name in names for partition in topics[name]]


def require(wanted: Iterable[str], existing: Iterable[str]) -> None:
    """Raise ``NotProvisionedError`` for missing topics: a client would create them with the broker's defaults."""
    if problem := describe_missing_topics(wanted, existing):
        raise NotProvisionedError(problem)


def describe_missing_topics(wanted: Iterable[str], existing: Iterable[str]) -> str:
    """Describe the missing topics and how to create them; empty when all exist."""
    existing_names = set(existing)
    absent = [name for name in wanted if name not in existing_names]
    if not absent:
        return ""
    return f"Kafka has no topic {', '.join(absent)}: run `schedulerlog pipeline provision`{_MAY_BE_HIDDEN}"


def _require_partitions(names: Sequence[str], partitions: Mapping[str, int]) -> None:
    for topic in TOPICS:
        if topic.name in names and topic.partitioned_as in names:
            count, needed = partitions[topic.name], partitions[topic.partitioned_as]
            if count < needed:
                raise NotProvisionedError(
                    f"Kafka's topic {topic.name} has {count} partitions and {topic.partitioned_as} has {needed}: "
                    "run `schedulerlog pipeline provision`"
                )


async def provision_topics(kafka: KafkaConnection, replication_factor: int, say: Say, max_partitions: int = 0) -> None:
    """Create or correct every topic of the contract; ``say`` gets a line about each.

    ``replication_factor`` 0 means one replica on every broker, three at most; ``max_partitions`` 0 means as many as the
    contract says. Raises ``KafkaError``, ``OSError``
    (also where the broker does not show a topic that was made).
    """
    async with administration(kafka) as admin:
        # A broker refuses more replicas than there are brokers.
        replicas = replication_factor or min(3, len((await admin.describe_cluster())["brokers"]))
        descriptions = {
            description["topic"]: description
            for description in await admin.describe_topics()
            if not description["error_code"]
        }
        numbers = {name: len(description["partitions"]) for name, description in descriptions.items()}
        for topic in TOPICS:
            partitions = min(topic.partitions, max_partitions or topic.partitions)
            wanted = replace(topic, partitions=max(partitions, numbers.get(topic.partitioned_as, 0)))
            if topic.name in descriptions:
                await _correct(admin, wanted, numbers[topic.name], say)
            else:
                await _create(admin, wanted, replicas, say)
        async with asyncio.timeout(_METADATA_SECONDS):
            await _await_topics(admin)


async def _await_topics(admin: AIOKafkaAdminClient) -> None:
    """Wait until the broker shows all topics of the contract."""
    # The controller has answered; a busy broker learns of the topics seconds later, and a process that asks it before
    # sees no topic.
    while True:
        if not describe_missing_topics([topic.name for topic in TOPICS], await admin.list_topics()):
            return
        await asyncio.sleep(0.1)


async def _create(admin: AIOKafkaAdminClient, topic: Topic, replicas: int, say: Say) -> None:
    new = NewTopic(topic.name, topic.partitions, replicas, topic_configs=build_configuration(topic))
    answer = await admin.create_topics([new])
    for _, code, *_ in answer.topic_errors:
        # Two `provision` may run at the same time: the one that comes second finds what it wanted.
        if code and for_code(code) is not TopicAlreadyExistsError:
            raise for_code(code)(f"topic {topic.name}")
    size = f"{topic.partitions} partitions, {replicas} replicas, kept {topic.retention.days} days"
    say(f"topic {topic.name}: made ({size})")


async def _correct(admin: AIOKafkaAdminClient, topic: Topic, partitions: int, say: Say) -> None:
    done = []
    # Keys are assigned by their hash modulo the number of partitions, so more partitions move pods to other ones.
    if partitions < topic.partitions:
        await admin.create_partitions({topic.name: NewPartitions(topic.partitions)})
        done.append(f"{partitions} partitions are now {topic.partitions} (pods that moved are in order from here on)")
    elif partitions > topic.partitions:
        done.append(f"has {partitions} partitions, not {topic.partitions}: Kafka can't take partitions away; left so")
    if wrong := list_differences(build_configuration(topic), await _read_configuration(admin, topic.name)):
        # The whole configuration and not the differences: this request resets every key that it does not name.
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name, configs=build_configuration(topic))
        await admin.alter_configs([resource])
        done += [f"{name} was {was}, is now {now}" for name, was, now in wrong]
    say(f"topic {topic.name}: {'; '.join(done) or 'as it should be'}")


async def _read_configuration(admin: AIOKafkaAdminClient, name: str) -> dict[str, str]:
    # An entry of `resource[4]` begins with name and value.
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    return {entry[0]: entry[1] for answer in answers for resource in answer.resources for entry in resource[4]}


def build_configuration(topic: Topic) -> dict[str, str]:
    """Return the configuration that the topic should have."""
    lag = topic.compacted_after
    segment = {} if topic.segment_bytes is None else {"segment.bytes": str(topic.segment_bytes)}
    return {
        # Written out, because a broker's own default may be compaction, which would drop all but the last record of a
        # pod.
        "cleanup.policy": "delete" if lag is None else "compact,delete",
        "min.compaction.lag.ms": _format_milliseconds(lag or timedelta(0)),
        "retention.ms": _format_milliseconds(topic.retention),
        "max.message.bytes": str(topic.max_message_bytes),
        # The time at which the broker takes a record is the one clock that all records share: a producer's clock may be
        # wrong by years, and counts, ranks and alerts go by the time of records.
        "message.timestamp.type": "LogAppendTime",
        **segment,
    }


def _format_milliseconds(time: timedelta) -> str:
    # As text and without a fraction: `list_differences` compares it with what the broker answers, letter by letter.
    return str(int(time.total_seconds() * 1000))


def list_differences(wanted: Mapping[str, str], present: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """List the differences, each as name, present value and wanted value."""
    return [(name, present.get(name, "not set"), value) for name, value in wanted.items() if present.get(name) != value]
