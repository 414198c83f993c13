"""Kafka: reachability, the topics as ``provision`` creates them, and how far our processes have read them."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cli.doctor.findings import PROVISION, Fault
from runtime.errors import SettingError
from runtime.kafka.errors import KafkaError, explain_kafka_error
from runtime.kafka.inspection import Backlog, KafkaAsItIs, TopicAsItIs, inspect, read_backlogs
from runtime.kafka.refusals import RefusedError
from runtime.kafka.topics import build_configuration, list_differences
from runtime.settings.kafka_connection import KafkaConnection
from schemas.topics import TOPICS, Topic

SECONDS: Final = 20.0
LATE_AFTER: Final = timedelta(minutes=1)
"""Age of a record that no group of ours should have left to read."""
_GROUPS: Final = "schedulerlog-"
_REACHED: Final = (
    "Is the address right, and is it reached from here (network policies)? Does the listener want TLS or SASL "
    "(SCHEDULERLOG_KAFKA_SECURITY_PROTOCOL), and may the user describe topics?"
)
_SEEN_BY: Final = "a user that may Describe and DescribeConfigs topics schedulerlog.* sees them"


async def check(kafka: KafkaConnection) -> tuple[list[Fault], list[str]]:
    """Check Kafka; return faults, and what this user may not see."""
    servers = kafka.kafka_bootstrap_servers
    try:
        async with asyncio.timeout(SECONDS):
            names = [topic.name for topic in TOPICS]
            state = await inspect(kafka, names)
            backlogs = await _read_backlogs(kafka, names)
    except RefusedError as refused:
        remedy = f"{refused.remedy}." if refused.remedy else _REACHED
        return [Fault("kafka", servers, f"can't be used: {refused.cause}", remedy)], []
    except (KafkaError, OSError, SettingError) as error:
        cause = f"does not answer ({explain_kafka_error(error)})"
        return [Fault("kafka", servers, cause, _REACHED)], []
    faults = [*compare_topics(state), *find_late_groups(backlogs)]
    return faults, [*describe_unseen(state), *describe_unseen_groups(backlogs)]


async def _read_backlogs(kafka: KafkaConnection, names: Sequence[str]) -> list[Backlog]:
    try:
        return await read_backlogs(kafka, _GROUPS, names, datetime.now(UTC) - LATE_AFTER)
    except (KafkaError, RefusedError):
        # Kafka has answered before: this user may describe groups or topics, but not both.
        return []


def compare_topics(kafka: KafkaAsItIs) -> Iterator[Fault]:
    """Compare Kafka's topics with those that ``provision`` creates. Pure."""
    if not kafka.topics and not kafka.unseen:
        yield Fault("kafka", "topics", f"none of the {len(TOPICS)} is there", f"To make them, {PROVISION}.")
        return
    for topic in TOPICS:
        if topic_state := kafka.topics.get(topic.name):
            yield from _compare_topic(topic, topic_state, kafka)
        elif topic.name not in kafka.unseen:
            yield Fault("kafka", topic.name, "the topic is missing", f"To make it, {PROVISION}.")


def find_late_groups(backlogs: Sequence[Backlog]) -> Iterator[Fault]:
    """Find the groups whose answers are behind the topics. Pure."""
    minutes = LATE_AFTER // timedelta(minutes=1)
    for backlog in backlogs:
        if backlog.late_records:
            problem = (
                f"has up to {backlog.records:,} records of {backlog.topic} left to read, "
                f"{backlog.late_records:,} of them older than {minutes} minute: what they hold is in no answer yet"
            )
            remedy = "Is the process running and ready? Its log and /readyz name what it waits for (docs/runbooks.md)."
            yield Fault("kafka", f"group {backlog.group}", problem, remedy)


def describe_unseen_groups(backlogs: Sequence[Backlog]) -> Iterator[str]:
    """Say so where no group was seen at all. Pure."""
    if not backlogs:
        yield (
            f"Kafka: how far our processes have read: no group {_GROUPS}* has committed an offset, or this user may "
            "not describe groups"
        )


def describe_unseen(kafka: KafkaAsItIs) -> Iterator[str]:
    """Describe what this user may not see, and who could. Pure."""
    without_settings = [name for name, topic in kafka.topics.items() if topic.configuration is None]
    if kafka.unseen:
        yield f"Kafka: whether {len(kafka.unseen)} of {len(TOPICS)} topics are there: {_SEEN_BY}"
    if without_settings:
        yield f"Kafka: the settings of {len(without_settings)} topics: {_SEEN_BY}"


def _derive_partitions(topic: Topic, kafka: KafkaAsItIs) -> int:
    """Derive how many partitions the topic should have: for a small cluster all topics may have fewer."""
    if topic.partitioned_as in kafka.topics:
        return kafka.topics[topic.partitioned_as].partitions
    divided = [other.name for other in TOPICS if other.partitions > 1 and other.name in kafka.topics]
    return min(topic.partitions, max(kafka.topics[name].partitions for name in divided) if divided else 1)


def _compare_topic(topic: Topic, topic_state: TopicAsItIs, kafka: KafkaAsItIs) -> Iterator[Fault]:
    wanted = _derive_partitions(topic, kafka)
    if topic_state.partitions < wanted:
        problem = f"has {topic_state.partitions} partitions, not {wanted}"
        yield Fault(
            "kafka", topic.name, problem, f"Stop the producers (docs/operations.md, Scaling), then {PROVISION}."
        )
    configuration = topic_state.configuration
    differences = [] if configuration is None else list_differences(build_configuration(topic), configuration)
    for name, was, now in differences:
        yield Fault("kafka", topic.name, f"{name} is {was}, not {now}", f"To correct it, {PROVISION}.")
    if topic_state.replicas < 2 <= kafka.brokers:
        problem = f"has one replica, although there are {kafka.brokers} brokers: what is on it is lost with its disk"
        remedy = "Add replicas (kafka-reassign-partitions); SCHEDULERLOG_REPLICATION_FACTOR counts for new topics only."
        yield Fault("kafka", topic.name, problem, remedy)
    if topic_state.in_sync < topic_state.replicas:
        problem = f"a partition has {topic_state.in_sync} of its {topic_state.replicas} replicas in sync"
        yield Fault("kafka", topic.name, problem, "Look at the brokers that hold the others.")
