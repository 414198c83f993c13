"""A worker and an index writer on real servers of their own, a producer, and what a reader finds afterwards."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dev import embedded
from dev.demo.processes import Processes, find_free_ports
from schemas.codec.records import EncodedRecord, encode
from schemas.events import AttemptEvent
from schemas.topics import ATTEMPTS, DECISIONS, DEVICE_VERDICTS, FINDINGS, NODE_STATES, PODS, TRENDS, Topic
from tests.support.harness.forked import Forked, ForkedProcesses
from tests.support.waiting import eventually

T = TypeVar("T")
WORKERS: Final = "schedulerlog-pipeline"
INDEX_WRITERS: Final = "schedulerlog-index"
INDEXED: Final = (ATTEMPTS, DEVICE_VERDICTS, FINDINGS, TRENDS, NODE_STATES, PODS)


@dataclass
class Pipeline:
    servers: embedded.Backends
    processes: Processes
    port: int
    index_port: int = 0

    def start(self, name: str = "worker", *arguments: str) -> None:
        self.processes.start(name, "pipeline", "worker", "--metrics-address", str(self.port), *arguments)

    def start_index(self, name: str = "index", *arguments: str) -> None:
        """Start the process that writes what is on the topics into the index."""
        self.processes.start(name, "pipeline", "index", "--metrics-address", str(self.index_port), *arguments)

    def start_all(self) -> None:
        """Start a worker and an index writer; returns when both are ready."""
        self.start()
        self.start_index()
        self.wait_ready()
        self.wait_index_ready()

    def start_placements(self, *arguments: str) -> None:
        self.processes.start("placements", "pipeline", "placements", "--metrics-address", str(self.port), *arguments)
        self.wait_ready("placements")

    def wait_ready(self, name: str = "worker") -> None:
        self.processes.wait_ready(name, f"http://127.0.0.1:{self.port}/readyz")

    def is_index_ready(self) -> bool:
        """Tell whether the index writer is connected to both stores, and waits for neither."""
        return httpx.get(f"http://127.0.0.1:{self.index_port}/readyz", timeout=30).status_code == httpx.codes.OK

    def wait_index_ready(self, name: str = "index") -> None:
        self.processes.wait_ready(name, f"http://127.0.0.1:{self.index_port}/readyz")

    def send(self, events: Iterable[AttemptEvent]) -> None:
        self.send_records([encode(event) for event in events])

    def send_records(self, records: Sequence[EncodedRecord], topic: str = DECISIONS.name, **options: Any) -> None:
        """Send records. ``options`` are those of the producer."""
        asyncio.run(_send(self.servers.bootstrap_servers, records, topic, **options))

    def get_documents(
        self, query: dict[str, Any] | None = None, alias: str = "schedulerlog-attempts"
    ) -> dict[str, Any]:
        """Return all documents that match, by id."""
        url = f"{self.servers.opensearch_url}/{alias}"
        httpx.post(f"{url}/_refresh", params={"allow_no_indices": "true"}, timeout=30)
        body = {"size": 10_000, "query": query or {"match_all": {}}}
        answer = httpx.post(f"{url}/_search", json=body, params={"ignore_unavailable": "true"}, timeout=30).json()
        return {hit["_id"]: hit["_source"] for hit in answer.get("hits", {}).get("hits", [])}

    def get_attempts(self, namespace: str) -> dict[str, Any]:
        try:
            return self.get_documents({"term": {"namespace": namespace}})
        except httpx.TransportError:  # the index is being restarted
            return {}

    def read_topic(self, name: str) -> list[Any]:
        """Read every record of a topic, as aiokafka gives it."""
        return asyncio.run(_read(self.servers.bootstrap_servers, name))

    def settle(self) -> None:
        """Return when all that follows from the decisions is on the topics and in the index, but for the counts of the
        latest minutes, which are published every few seconds."""
        self.settle_group(WORKERS, [DECISIONS])
        self.settle_group(INDEX_WRITERS, INDEXED)

    def settle_group(self, group: str, topics: Sequence[Topic]) -> None:
        """Return when the group has acknowledged all that the topics hold: what it makes of that is written."""
        eventually(lambda: not self.count_unacknowledged(group, topics), f"{group} is behind")

    def count_unacknowledged(self, group: str = WORKERS, topics: Sequence[Topic] = (DECISIONS,)) -> int:
        return asyncio.run(_count_unacknowledged(self.servers.bootstrap_servers, group, topics))

    def stop_all(self) -> None:
        for name in self.processes.list_running():
            self.processes.stop(name)

    def put_right(self) -> None:
        """Restore the servers, a ready worker and a ready index writer, whatever the test before did to them."""
        for server in self.servers.servers:
            if not server.is_alive:
                server.start()
        for name in self.processes.list_running() - {"worker", "index"}:
            self.processes.stop(name)
        if missing := {"worker", "index"} - self.processes.list_running():
            self.processes.run("provision", "pipeline", "provision")
        if "worker" in missing:
            self.start()
        if "index" in missing:
            self.start_index()
        self.wait_ready()
        self.wait_index_ready()

    def run_command(self, *arguments: str) -> str:
        """Run a command of the pipeline, and return what it says."""
        environment = os.environ | self.servers.environment
        process = Forked("pipeline", *arguments, stdout=subprocess.PIPE, env=environment, text=True)
        output: str = process.communicate(timeout=120)[0]
        assert process.returncode == 0
        return output

    def recreate_topic(self, name: str, partitions: int, configuration: dict[str, str]) -> None:
        asyncio.run(recreate(self.servers.bootstrap_servers, NewTopic(name, partitions, 1, None, configuration)))

    def get_readiness(self) -> str:
        """Return what the worker says that it waits for."""
        return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=30).text

    def get_index_readiness(self) -> str:
        """Return what the index writer says that it waits for."""
        return httpx.get(f"http://127.0.0.1:{self.index_port}/readyz", timeout=30).text

    def get_peak_memory_bytes(self, name: str) -> int:
        """Return the most memory that the process has had."""
        status = Path(f"/proc/{self.processes.get_pid(name)}/status").read_text(encoding="ascii")
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))

    def sum_metric(self, name: str) -> float:
        lines = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=30).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@contextlib.contextmanager
def pipeline(folder: Path, servers: embedded.Backends, **environment: str) -> Iterator[Pipeline]:
    settings = {
        "SCHEDULERLOG_INCOMPLETE_AFTER": "3",
        "SCHEDULERLOG_MAX_BACKOFF": "1",
    }
    with ForkedProcesses(folder / "logs", servers.environment | settings | environment) as processes:
        processes.run("provision", "pipeline", "provision")
        ports = find_free_ports("worker", "index")
        yield Pipeline(servers, processes, int(ports["worker"]), int(ports["index"]))


async def _send(servers: str, records: Sequence[EncodedRecord], topic: str, **options: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True, **options) as producer:
        for record in records:
            await producer.send(topic, record.value, key=record.key, headers=record.headers)
        await producer.flush()


async def _read(servers: str, topic: str) -> list[Any]:
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None
    ) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        collected = []
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                collected += records
        return collected


async def _count_unacknowledged(servers: str, group: str, topics: Sequence[Topic]) -> int:
    """Count the records of the topics that the group has not acknowledged."""
    async with AIOKafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)])
        ends = await consumer.end_offsets(consumer.assignment())
        return sum([end - (await consumer.committed(partition) or 0) for partition, end in ends.items()])


async def recreate(servers: str, topic: NewTopic) -> None:
    """Delete the topic, and make it as ``read_topic`` says."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.delete_topics([topic.name])
        # The broker deletes it after its answer.
        for _ in range(100):
            if not any((await admin.create_topics([topic])).topic_errors[0][1:2]):
                return
            await asyncio.sleep(0.2)
    finally:
        await admin.close()
