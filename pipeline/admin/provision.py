"""Makes the topics and index templates of the contract, or corrects them. Safe to run again at any time.

What exists is compared, and corrected where the store allows it. What can't be changed (fewer partitions, another
mapping of an existing index) is reported and left as it is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import RequestError, TransportError

from pipeline.settings import Settings
from pipeline.sinks.opensearch import client
from schemas.indices import INDICES, MAPPING_VERSION, Index
from schemas.topics import TOPICS, Topic

Say = Callable[[str], None]
T = TypeVar("T")

RETRY_SECONDS: Final = 0.5


class UnreachableError(Exception):
    """A service did not answer in time; the message names it and where it was looked for."""


async def provision(settings: Settings, wait_seconds: float, say: Say) -> None:
    """Make or correct everything; ``say`` gets a line about each. Raises ``UnreachableError``."""
    deadline = time.monotonic() + wait_seconds
    servers, url = settings.kafka_bootstrap_servers, settings.opensearch_url
    await _patiently(lambda: _provision_topics(settings, say), deadline, f"Kafka at {servers}")
    await _patiently(lambda: _provision_templates(settings, say), deadline, f"OpenSearch at {url}")


async def _patiently(work: Callable[[], Awaitable[T]], deadline: float, what: str) -> T:
    """The result of ``work``, which is repeated until ``deadline`` while the service ``what`` is not up yet."""
    while True:
        try:
            return await work()
        except (KafkaError, OSError, TransportError) as error:
            if time.monotonic() > deadline or not _may_pass(error):
                raise UnreachableError(f"{what}: {error}") from None
            await asyncio.sleep(RETRY_SECONDS)


def _may_pass(error: Exception) -> bool:
    """Can the next try succeed without anybody changing something?"""
    if isinstance(error, TransportError):
        return isinstance(error, NoConnectionError) or error.status_code in (429, 502, 503, 504)
    return error.retriable if isinstance(error, KafkaError) else True


async def _provision_topics(settings: Settings, say: Say) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap_servers)
    try:
        await admin.start()
        replicas = settings.replication_factor or min(3, len((await admin.describe_cluster())["brokers"]))
        known = {each["topic"]: each for each in await admin.describe_topics() if not each["error_code"]}
        for topic in TOPICS:
            if topic.name in known:
                await _correct_topic(admin, topic, len(known[topic.name]["partitions"]), say)
            else:
                await _make_topic(admin, topic, replicas, say)
    finally:
        await admin.close()


async def _make_topic(admin: AIOKafkaAdminClient, topic: Topic, replication: int, say: Say) -> None:
    new = NewTopic(topic.name, topic.partitions, replication, topic_configs=configuration(topic))
    answer = await admin.create_topics([new])
    for _, code, *_ in answer.topic_errors:
        if code and for_code(code) is not TopicAlreadyExistsError:
            raise for_code(code)(f"topic {topic.name}")
    size = f"{topic.partitions} partitions, {replication} replicas, kept {topic.retention.days} days"
    say(f"topic {topic.name}: made ({size})")


async def _correct_topic(admin: AIOKafkaAdminClient, topic: Topic, partitions: int, say: Say) -> None:
    done = []
    if partitions < topic.partitions:
        await admin.create_partitions({topic.name: NewPartitions(topic.partitions)})
        done.append(f"{partitions} partitions are now {topic.partitions} (pods that moved are in order from here on)")
    elif partitions > topic.partitions:
        done.append(f"has {partitions} partitions, not {topic.partitions}: Kafka can't take partitions away; left so")
    if wrong := differences(configuration(topic), await _configuration(admin, topic.name)):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name, configs=configuration(topic))
        await admin.alter_configs([resource])
        done += [f"{name} was {was}, is now {now}" for name, was, now in wrong]
    say(f"topic {topic.name}: {'; '.join(done) or 'as it should be'}")


async def _configuration(admin: AIOKafkaAdminClient, name: str) -> dict[str, str]:
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    return {entry[0]: entry[1] for answer in answers for resource in answer.resources for entry in resource[4]}


def configuration(topic: Topic) -> dict[str, str]:
    """What the topic's configuration should say."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(int(topic.retention.total_seconds() * 1000)),
        "max.message.bytes": str(topic.max_message_bytes),
    }


def differences(wanted: Mapping[str, str], known: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Name, value as it is, value as it should be."""
    return [(name, known.get(name, "not set"), value) for name, value in wanted.items() if known.get(name) != value]


async def _provision_templates(settings: Settings, say: Say) -> None:
    store = client(settings.opensearch_url)
    try:
        for index in INDICES:
            say(await _put_template(store, index, settings))
            for name, version in await _outdated(store, index):
                say(f"index {name}: {await _upgrade(store, name, index, version)}")
    finally:
        await store.close()


async def _put_template(store: AsyncOpenSearch, index: Index, settings: Settings) -> str:
    wanted = index.template(settings.index_shards, settings.index_replicas)
    path = f"/_index_template/{index.alias}"
    found = await store.transport.perform_request("GET", path, ignore=(404,))
    templates = found.get("index_templates", [])
    before = templates[0]["index_template"].get("_meta", {}) if templates else {}
    await store.transport.perform_request("PUT", path, body=wanted)
    if not templates:
        return f"index template {index.alias}: made"
    same = before == wanted["_meta"]
    return f"index template {index.alias}: {'written again' if same else f'replaced, was {before}'}"


async def _upgrade(store: AsyncOpenSearch, name: str, index: Index, version: object) -> str:
    """Bring an existing index to the mapping of this version; a line that says what was done.

    A newer mapping only adds fields, which OpenSearch allows.
    """
    mapping = index.template()["template"]["mappings"]
    try:
        await store.transport.perform_request("PUT", f"/{name}/_mapping", body=mapping)
    except RequestError as error:
        return f"has mapping version {version}, which can't become {MAPPING_VERSION}: {error.error}; left so"
    return f"mapping version was {version}, is now {MAPPING_VERSION}"


async def _outdated(store: AsyncOpenSearch, index: Index) -> list[tuple[str, object]]:
    path = f"/{index.alias}-*/_mapping"
    mappings: dict[str, Any] = await store.transport.perform_request("GET", path, ignore=(404,))
    return sorted(_other_versions(mappings))


def _other_versions(mappings: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, index in mappings.items():
        meta = index.get("mappings", {}).get("_meta", {}) if isinstance(index, Mapping) else {}
        version = meta.get("schedulerlog_mapping_version")
        if isinstance(index, Mapping) and "mappings" in index and version != MAPPING_VERSION:
            yield name, version
