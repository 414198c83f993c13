"""The processes of the pipeline as benchmarks run them: started, fed with records, and their CPU time."""

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Final

from dev.bench.backends import send
from dev.bench.cpu import read_cpu_seconds
from dev.demo.processes import Processes, find_free_ports
from runtime.kafka.consumer import TopicPartition, connected, create_consumer
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.codec.records import EncodedRecord
from schemas.topics import ATTEMPTS, DECISIONS, DEVICE_VERDICTS, FINDINGS, NODE_STATES, PODS, TRENDS, Topic

PATIENT = {"SCHEDULERLOG_SESSION_TIMEOUT": "120"}
"""Processes are paused while records are sent, and must keep their partitions meanwhile."""
WORKERS: Final = "schedulerlog-pipeline"
INDEX_WRITERS: Final = "schedulerlog-index"
INDEXED: Final = (ATTEMPTS, DEVICE_VERDICTS, FINDINGS, TRENDS, NODE_STATES, PODS)
Pids = Mapping[str, int]
"""Process id by name."""


def start_worker(processes: Processes, name: str = "worker") -> int:
    """Start a worker and wait until it has its partitions; returns its process id."""
    return _start(processes, name, "worker", "--instance-id", name)


def start_index(processes: Processes, name: str = "index", port: str | None = None) -> int:
    """Start an index writer and wait until it is connected; returns its process id. ``port`` has its metrics."""
    return _start(processes, name, "index", port=port)


def start_placements(processes: Processes) -> int:
    """Start the process that writes placements and observations, and wait until it is connected; returns its id."""
    return _start(processes, "placements", "placements")


def start_both(processes: Processes) -> Pids:
    return {"worker": start_worker(processes), "index": start_index(processes)}


def _start(processes: Processes, name: str, *command: str, port: str | None = None) -> int:
    port = port or find_free_ports(name)[name]
    processes.start(name, "pipeline", *command, "--metrics-address", port)
    processes.wait_ready(name, f"http://127.0.0.1:{port}/readyz")
    return processes.get_pid(name)


def feed(processes: Processes, servers: str, pids: Pids, records: Iterable[EncodedRecord]) -> dict[str, float]:
    """Feed the records; return the CPU seconds of each process (worker, and index if it runs) until all results of the
    decisions are published, and indexed."""
    before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
    send_while_stopped(servers, pids, records)
    await_settled(processes, servers, WORKERS, (DECISIONS,))
    if "index" in pids:
        await_settled(processes, servers, INDEX_WRITERS, INDEXED)
    return {name: read_cpu_seconds(pid) - before[name] for name, pid in pids.items()}


def send_while_stopped(servers: str, pids: Pids, records: Iterable[EncodedRecord]) -> None:
    """Send records that the processes read afterwards.

    Sending while they read would make their work more expensive: both share caches and hyper-threads. A stopped process
    sends no heartbeats, hence the long session timeout of ``PATIENT``.
    """
    for pid in pids.values():
        os.kill(pid, signal.SIGSTOP)
    try:
        send(servers, DECISIONS.name, records)
    finally:
        for pid in pids.values():
            os.kill(pid, signal.SIGCONT)


def know_states(processes: Processes, servers: str, states: Iterable[EncodedRecord]) -> None:
    """Send node states and return when they are indexed; no index writer runs before or after.

    The index writer reports every attempt that refers to a state that there is not.
    """
    start_index(processes, "states")
    send(servers, NODE_STATES.name, states)
    await_settled(processes, servers, INDEX_WRITERS, (NODE_STATES,))
    processes.stop("states")


def await_settled(processes: Processes, servers: str, group: str, topics: Iterable[Topic]) -> None:
    """Return when the group has committed all that the topics hold."""
    listed = list(topics)
    while asyncio.run(count_unacknowledged(servers, group, listed)):
        processes.check()
        time.sleep(0.2)


async def count_unacknowledged(servers: str, group: str, topics: Iterable[Topic]) -> int:
    """Count the records of the topics that the group has not committed."""
    async with connected(create_consumer(build_kafka_connection(servers), group=group)) as consumer:
        consumer.assign([TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)])
        ends: dict[TopicPartition, int] = await consumer.end_offsets(consumer.assignment())
        return sum([end - (await consumer.committed(partition) or 0) for partition, end in ends.items()])
