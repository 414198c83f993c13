"""The trend counter on a real broker: in two workers, killed and rebalanced, each attempt is counted once."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from dev import embedded
from dev.demo.processes import find_free_ports
from pipeline.trends.process import GROUP
from schemas.codec.records import decode, encode
from schemas.events import AttemptCounted, PodRef, TrendsCounted
from schemas.topics import ATTEMPT_COUNTS, DEAD_LETTERS, TRENDS
from tests.support.builders.events import STARTED, a_contribution, an_attempt_counted
from tests.support.harness.forked import ForkedProcesses
from tests.support.harness.pipeline_process import Pipeline
from tests.support.harness.topics import provision_all
from tests.support.waiting import until

BEGAN = STARTED.replace(second=0, microsecond=0)
PARTITIONS = 2


@pytest.fixture
def running(own_backends: Callable[..., embedded.Backends], tmp_path: Path) -> Iterator[Pipeline]:
    """A broker with the topics of the contract. Workers need no index."""
    servers = own_backends(only="kafka")
    asyncio.run(provision_all(servers.bootstrap_servers))
    settings = {
        "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": servers.bootstrap_servers,
        "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:1",
        "SCHEDULERLOG_SESSION_TIMEOUT": "2",
    }
    with ForkedProcesses(tmp_path / "logs", settings) as processes:
        yield Pipeline(servers, processes, int(find_free_ports("worker")["worker"]))


def build_counts(partition: int, first: int, end: int) -> list[AttemptCounted]:
    """Build attempts that are pending at first and then succeed, one a second; a third of them twelve minutes later."""
    counts = []
    for number in range(first, end):
        name = f"pod-{partition}-{number}"
        fields = {"attempt_id": f"attempt-{name}", "pod": PodRef(namespace="counted", name=name, uid=f"uid-{name}")}
        recorded_at = BEGAN + timedelta(seconds=number)
        pending = a_contribution(version=1, status="pending")
        succeeded = a_contribution(version=2, status="succeeded")
        later = recorded_at + timedelta(minutes=12 if number % 3 == 0 else 0)
        counts.append(an_attempt_counted(**fields, recorded_at=recorded_at, adds=pending))
        counts.append(an_attempt_counted(**fields, recorded_at=later, adds=succeeded, replaces=pending))
    return counts


def send(running: Pipeline, first: int, end: int) -> None:
    async def send_all() -> None:
        async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                for event in build_counts(partition, first, end):
                    key, value, headers, *_ = encode(event)
                    await producer.send(ATTEMPT_COUNTS.name, value, key=key, headers=headers, partition=partition)
            await producer.flush()

    asyncio.run(send_all())


def read_rows(running: Pipeline) -> dict[str, int]:
    """Read result to number of attempts, of the rows with the greatest version."""
    latest: dict[tuple[object, ...], TrendsCounted] = {}
    contents: dict[str, bytes] = {}
    for record in running.read_topic(TRENDS.name):
        event = decode(record.value, record.headers)
        assert isinstance(event, TrendsCounted)
        # Published again by another worker, the same id has the same content.
        assert contents.setdefault(event.id, record.value) == record.value
        key = event.started_at, event.partition, event.recorded_at, event.part
        if key not in latest or latest[key].version < event.version:
            latest[key] = event
    sums: Counter[str] = Counter()
    for event in latest.values():
        for result, dimension, attempts in zip(event.result, event.dimension, event.attempts, strict=True):
            sums[result] += int(attempts) if dimension == "all" else 0
    return dict(sums)


def read_committed(running: Pipeline) -> list[int | None]:
    async def read() -> list[int | None]:
        servers = running.servers.bootstrap_servers
        async with AIOKafkaConsumer(bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False) as consumer:
            return [
                await consumer.committed(TopicPartition(ATTEMPT_COUNTS.name, partition))
                for partition in range(PARTITIONS)
            ]

    return asyncio.run(read())


def wait_counted(running: Pipeline, attempts: int) -> None:
    """Return when the rows show that each attempt has succeeded."""
    expected = {"pending": 0, "succeeded": PARTITIONS * attempts}
    assert until(lambda: read_rows(running), lambda counts: counts == expected) == expected


def test_each_attempt_is_counted_once_whichever_workers_are_killed(running: Pipeline) -> None:
    other = replace(running, port=int(find_free_ports("other")["other"]))
    running.start("worker", "--instance-id", "first")
    running.wait_ready("worker")
    # More than are remembered, so that an offset is committed from which a restart reads again.
    send(running, 0, 6_500)
    wait_counted(running, 6_500)
    offsets = until(lambda: read_committed(running), all)
    assert all(offset and offset < 2 * 6_500 for offset in offsets)
    # Partitions move while attempts come, then one worker is killed, then the other one.
    other.start("other", "--instance-id", "second")
    send(running, 6_500, 6_600)
    other.wait_ready("other")
    running.processes.kill("worker")
    send(running, 6_600, 6_700)
    wait_counted(running, 6_700)
    running.processes.kill("other")
    running.start("worker", "--instance-id", "first")
    # What a killed worker had published it publishes again.
    send(running, 6_650, 6_750)
    wait_counted(running, 6_750)


def test_what_is_no_attempt_count_is_a_dead_letter(running: Pipeline) -> None:
    async def send_broken() -> None:
        async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
            await producer.send_and_wait(ATTEMPT_COUNTS.name, b"{", key=b"broken", headers=encode(counted).headers)

    counted = build_counts(0, 0, 1)[0]
    running.start()
    running.wait_ready()
    asyncio.run(send_broken())
    values = until(
        lambda: [letter.value for letter in running.read_topic(DEAD_LETTERS.name) if letter.key == b"broken"]
    )
    assert set(values) == {b"{"}
