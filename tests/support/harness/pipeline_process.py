"""A worker process on real servers of its own, a producer, and what a reader finds afterwards."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import embedded
from demo.processes import Processes, free_ports
from schemas.codec.records import EncodedRecord, encode
from schemas.events import AttemptEvent
from schemas.topics import DECISIONS, Topic
from tests.support.waiting import eventually

T = TypeVar("T")


@dataclass
class Pipeline:
    servers: embedded.Backends
    processes: Processes
    port: int

    def start(self, name: str = "worker", *arguments: str) -> None:
        self.processes.start(name, "pipeline", "worker", "--metrics-address", str(self.port), *arguments)

    def start_node_states(self, *arguments: str) -> None:
        self.processes.start("node-states", "pipeline", "node-states", *arguments)

    def start_placements(self, *arguments: str) -> None:
        self.processes.start("placements", "pipeline", "placements", "--metrics-address", str(self.port), *arguments)
        self.wait_ready("placements")

    def wait_ready(self, name: str = "worker") -> None:
        self.processes.wait_ready(name, f"http://127.0.0.1:{self.port}/readyz")

    def send(self, events: Iterable[AttemptEvent]) -> None:
        self.send_records([encode(event) for event in events])

    def send_records(self, records: Sequence[EncodedRecord]) -> None:
        asyncio.run(_send(self.servers.bootstrap_servers, records))

    def documents(self, query: dict[str, Any] | None = None, alias: str = "schedulerlog-attempts") -> dict[str, Any]:
        """Id to document of all that match."""
        url = f"{self.servers.opensearch_url}/{alias}"
        httpx.post(f"{url}/_refresh", params={"allow_no_indices": "true"}, timeout=30)
        body = {"size": 10_000, "query": query or {"match_all": {}}}
        answer = httpx.post(f"{url}/_search", json=body, params={"ignore_unavailable": "true"}, timeout=30).json()
        return {hit["_id"]: hit["_source"] for hit in answer.get("hits", {}).get("hits", [])}

    def attempts(self, namespace: str) -> dict[str, Any]:
        try:
            return self.documents({"term": {"namespace": namespace}})
        except httpx.TransportError:  # the index is being restarted
            return {}

    def topic(self, name: str) -> list[Any]:
        """Every record of a topic, as aiokafka gives it."""
        return asyncio.run(_read(self.servers.bootstrap_servers, name))

    def settle(self, group: str = "schedulerlog-pipeline", topics: Sequence[Topic] = (DECISIONS,)) -> None:
        """Return when the group has acknowledged all that the topics hold: what it makes of that is written."""
        eventually(lambda: not self.unacknowledged(group, topics), f"{group} is behind")

    def unacknowledged(self, group: str = "schedulerlog-pipeline", topics: Sequence[Topic] = (DECISIONS,)) -> int:
        return asyncio.run(_unacknowledged(self.servers.bootstrap_servers, group, topics))

    def is_waiting(self) -> bool:
        """Whether the worker waits for the index or the broker."""
        return self.metric("schedulerlog_worker_is_waiting") == 1

    def stop_all(self) -> None:
        for name in self.processes.running():
            self.processes.stop(name)

    def put_right(self) -> None:
        """Have the servers and a ready worker again, whatever the test before did to them."""
        for server in self.servers.servers:
            if not server.is_alive:
                server.start()
        for name in self.processes.running() - {"worker"}:
            self.processes.stop(name)
        if not self.processes.is_running("worker"):
            self.processes.run("provision", "pipeline", "provision")
            self.start()
        self.wait_ready()

    def command(self, *arguments: str) -> str:
        """What a command of the pipeline says."""
        command = [sys.executable, "-m", "pipeline", *arguments]
        return subprocess.run(
            command, env=os.environ | self.servers.environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout

    def recreate_topic(self, name: str, partitions: int, configuration: dict[str, str]) -> None:
        asyncio.run(_recreate(self.servers.bootstrap_servers, NewTopic(name, partitions, 1, None, configuration)))

    def metric(self, name: str) -> float:
        lines = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=5).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@contextlib.contextmanager
def pipeline(folder: Path, servers: embedded.Backends, **environment: str) -> Iterator[Pipeline]:
    settings = {
        "SCHEDULERLOG_INCOMPLETE_AFTER_SECONDS": "3",
        "SCHEDULERLOG_MAX_BACKOFF_SECONDS": "1",
    }
    with Processes(folder / "logs", servers.environment | settings | environment) as processes:
        processes.run("provision", "pipeline", "provision")
        yield Pipeline(servers, processes, int(free_ports("worker")["worker"]))


async def _send(servers: str, records: Sequence[EncodedRecord]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
        for record in records:
            await producer.send(DECISIONS.name, record.value, key=record.key, headers=record.headers)
        await producer.flush()


async def _read(servers: str, topic: str) -> list[Any]:
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None
    ) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        found = []
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += records
        return found


async def _unacknowledged(servers: str, group: str, topics: Sequence[Topic]) -> int:
    """How many records of the topics the group has not acknowledged."""
    async with AIOKafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(topic.name, each) for topic in topics for each in range(topic.partitions)])
        ends = await consumer.end_offsets(consumer.assignment())
        return sum([end - (await consumer.committed(each) or 0) for each, end in ends.items()])


async def _recreate(servers: str, topic: NewTopic) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.delete_topics([topic.name])
        # Deleting goes on after the answer.
        for _ in range(100):
            if not any((await admin.create_topics([topic])).topic_errors[0][1:2]):
                return
            await asyncio.sleep(0.2)
    finally:
        await admin.close()
