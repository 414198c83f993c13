"""Recovery of a lost index as docs/recovery.md promises it: from the topics what they still hold, from a snapshot the
rest.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from dev.demo.processes import find_free_ports
from schemas.codec.chunking import split
from schemas.codec.records import encode
from schemas.events import BindOutcome, Event, FindingReported, PickedDevice, PodObserved, PodRef
from schemas.indices import INDICES
from schemas.topics import ATTEMPTS, DEVICE_VERDICTS, FINDINGS, NODE_STATES, NODES, PODS, SCHEDULERS, Topic
from tests.support.builders.events import ATTEMPT, STARTED, a_request, a_summary, build_devices_judged
from tests.support.builders.node_states import a_node_state
from tests.support.harness.pipeline_process import INDEX_WRITERS, INDEXED, Pipeline
from tests.support.waiting import eventually

PLACEMENTS: Final = "schedulerlog-placements"
GROUPS: Final = {INDEX_WRITERS: INDEXED, PLACEMENTS: (ATTEMPTS, PODS, NODES, SCHEDULERS)}

Records = list[tuple[Topic, Event]]
Offsets = dict[str, dict[TopicPartition, int]]


@pytest.fixture
def running(provisioned: Pipeline) -> Iterator[Pipeline]:
    start(provisioned)
    yield provisioned
    provisioned.stop_all()


def start(running: Pipeline) -> None:
    running.start_index()
    replace(running, port=int(find_free_ports("placements")["placements"])).start_placements()
    running.wait_index_ready()


def build_facts(number: int) -> Records:
    """Build an attempt that is bound, its verdicts, a finding, and the pod until its end."""
    ref, started_at = (
        PodRef(namespace="lost", name=f"pod-{number}", uid=f"uid-{number}"),
        STARTED + timedelta(minutes=number),
    )
    head = ATTEMPT | {"pod": ref, "attempt_id": f"{number:032}", "started_at": started_at}
    picked = PickedDevice(container=0, uuid=f"GPU-{number}", model="A100", memory_mib=10_240, cores_percent=25)
    bind = BindOutcome(node="node1", bound=True, ended_at=started_at + timedelta(seconds=2))
    summary = a_summary(
        ["node1"], **head, version=number + 2, status="succeeded", chosen="node1", requests=[a_request(count=1)],
        picked=[picked], picked_devices=[picked.uuid], bind=bind,
    )  # fmt: skip
    seen = [("Running", 5), ("Succeeded", 30)]
    return [
        *((ATTEMPTS, part) for part in split(summary)),
        (DEVICE_VERDICTS, build_devices_judged(**head)),
        (FINDINGS, FindingReported(**head, finding="Imbalance", found_at=started_at, node="node1")),
        (NODE_STATES, a_node_state("node1", 2, revision=number, observed_at=started_at)),
        *((PODS, an_observation(ref, phase, started_at + timedelta(seconds=seconds))) for phase, seconds in seen),
    ]


def an_observation(ref: PodRef, phase: str, observed_at: Any) -> PodObserved:
    return PodObserved(cluster="default", pod=ref, observed_at=observed_at, phase=phase, node="node1")


def publish(running: Pipeline, numbers: range) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
            for topic, event in (fact for number in numbers for fact in build_facts(number)):
                record = encode(event)
                await producer.send(topic.name, record.value, key=record.key, headers=record.headers)

    asyncio.run(send())
    settle(running)


def settle(running: Pipeline) -> None:
    for group, topics in GROUPS.items():
        running.settle_group(group, topics)


def read_documents(running: Pipeline) -> dict[str, dict[str, Any]]:
    return {index.alias: running.get_documents(alias=index.alias) for index in INDICES}


def call_opensearch(running: Pipeline, method: str, path: str, body: Any = None) -> Any:
    answer = httpx.request(method, f"{running.servers.opensearch_url}{path}", json=body, timeout=60)
    return answer.raise_for_status().json()


def lose_the_index(running: Pipeline) -> None:
    running.stop_all()
    for name in call_opensearch(running, "GET", "/_cat/indices/schedulerlog-*?format=json&h=index"):
        call_opensearch(running, "DELETE", f"/{name['index']}")
    for index in INDICES:
        call_opensearch(running, "DELETE", f"/_index_template/{index.alias}")


def read_ends(running: Pipeline) -> Offsets:
    """Read the offsets that each group has read to, where all is settled."""
    return asyncio.run(_fetch_ends(running.servers.bootstrap_servers))


async def _fetch_ends(servers: str) -> Offsets:
    async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
        return {group: await consumer.end_offsets(_list_partitions(topics)) for group, topics in GROUPS.items()}


def _list_partitions(topics: tuple[Topic, ...]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]


def set_back(running: Pipeline, offsets: Offsets) -> None:
    """Set the offsets of a group without members back, as ``kafka-consumer-groups --reset-offsets`` does."""
    asyncio.run(_set_back(running.servers.bootstrap_servers, offsets))


async def _set_back(servers: str, offsets: Offsets) -> None:
    for group, places in offsets.items():
        async with AIOKafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
            consumer.assign(list(places))
            await consumer.commit(places)


def expire(running: Pipeline, before: Offsets) -> None:
    """Expire records as Kafka does with those that are older than the topic's retention."""
    asyncio.run(_expire(running.servers.bootstrap_servers, before))


async def _expire(servers: str, before: Offsets) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        records = {
            partition: RecordsToDelete(offset) for places in before.values() for partition, offset in places.items()
        }
        await admin.delete_records(records)
    finally:
        await admin.close()


def test_a_lost_index_is_written_again_from_the_topics_or_from_a_snapshot_and_what_came_after_it(
    running: Pipeline,
) -> None:
    repository = {"type": "fs", "settings": {"location": "backup"}}
    call_opensearch(running, "PUT", "/_snapshot/backup", repository)
    publish(running, range(20))
    at_snapshot = read_ends(running)
    everything = {"indices": "schedulerlog-*", "include_global_state": False}
    call_opensearch(running, "PUT", "/_snapshot/backup/first?wait_for_completion=true", everything)
    publish(running, range(20, 40))
    before = read_documents(running)
    assert [alias for alias, documents in before.items() if not documents] == ["schedulerlog-trends"]
    assert len(before["schedulerlog-occupancy"]) == len(before["schedulerlog-attempts"]) == 40

    # Without a snapshot, while the topics still hold everything.
    lose_the_index(running)
    running.processes.run("provision", "pipeline", "provision")
    set_back(running, {group: dict.fromkeys(places, 0) for group, places in at_snapshot.items()})
    start(running)
    settle(running)
    assert read_documents(running) == before

    # The topics hold no more than what came after the snapshot.
    lose_the_index(running)
    expire(running, at_snapshot)
    running.processes.run("provision", "pipeline", "provision")
    call_opensearch(running, "POST", "/_snapshot/backup/first/_restore?wait_for_completion=true", everything)
    eventually(lambda: len(running.get_documents()) == 20, "the snapshot is not restored")
    set_back(running, at_snapshot)
    start(running)
    settle(running)
    assert read_documents(running) == before
