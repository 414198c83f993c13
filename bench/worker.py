"""The Faust worker compared with raw aiokafka and the same decoder; a record per device compared with columns."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain

import httpx
import orjson

import embedded
from bench import cluster
from bench.backends import FOLDER, send
from bench.cluster import DEVICES_PER_NODE
from bench.cpu import cpu_seconds, resident_mib
from bench.report import Figure, Result, against_first
from demo.processes import Processes, free_ports
from demo.stack import provisioned
from schemas.codec.records import EncodedRecord, decode
from schemas.events import DevicesJudged
from schemas.topics import DECISIONS

NODES = 5_000
VERDICTS = NODES * DEVICES_PER_NODE
READERS = ("aiokafka", "faust")
WARM_UP_ATTEMPTS = 30
PATIENT = {"SCHEDULERLOG_SESSION_TIMEOUT_SECONDS": "120"}
"""The worker is paused while records are sent, and must keep its partitions meanwhile."""


def worker(attempts: int = 120) -> Result:
    """CPU of the whole worker (decode, fold, documents, messages, Faust) and of readers that only decode and count."""
    # Every device changes between two attempts.
    records = list(chain(*cluster.attempts(NODES, attempts, changing=True)))
    warm_up = len(records) // attempts * WARM_UP_ATTEMPTS
    with provisioned(FOLDER / "worker", **PATIENT) as (backends, processes):
        whole = run_worker(processes, backends, records, attempts)
        seconds = {
            client: read(client, backends.bootstrap_servers, DECISIONS.name, len(records), warm_up)
            for client in READERS
        }
    with provisioned(FOLDER / "worker", SCHEDULERLOG_STORE_DEVICES="false", **PATIENT) as (backends, processes):
        lean = run_worker(processes, backends, records, attempts)
    with provisioned(FOLDER / "worker", **PATIENT) as (backends, processes):
        still = run_worker(processes, backends, list(chain(*cluster.attempts(NODES, attempts))), attempts)
    counted = attempts * VERDICTS
    unit = "verdicts per CPU second"
    figures = [
        Figure("raw aiokafka, decode and count", counted / seconds["aiokafka"], unit),
        Figure("Faust agent, decode and count", counted / seconds["faust"], unit),
        Figure("the worker, Kafka to index", counted / whole[0], unit, note=whole[1]),
        Figure("the worker, without storing device rows", counted / lean[0], unit, note=lean[1]),
        Figure("the worker, Kafka to index, while no device changes", counted / still[0], unit, note=still[1]),
    ]
    return Result(
        "worker",
        "The pipeline worker against readers of the same records that decode and count, nothing else",
        f"{attempts} attempts of {NODES:,} nodes x {DEVICES_PER_NODE} devices, all refused: {len(records)} records",
        against_first(figures, lambda first, this: this / first),
    )


def run_worker(
    processes: Processes, backends: embedded.Backends, records: list[EncodedRecord], attempts: int
) -> tuple[float, str]:
    """CPU seconds of a worker from the first record to the last document, and a note.

    Other attempts come before: what happens once (imports, connections, buffers that grow for the first thirty
    attempts) is not part of the cost of an attempt.
    """
    pid = start_worker(processes)
    warm_up = list(chain(*cluster.warm_up(NODES, WARM_UP_ATTEMPTS)))
    feed(processes, backends, pid, warm_up, WARM_UP_ATTEMPTS)
    seconds = feed(processes, backends, pid, records, WARM_UP_ATTEMPTS + attempts)
    note = f"{seconds / attempts * 1000:.3g} ms an attempt, {resident_mib(pid):.0f} MiB resident"
    processes.stop("worker")
    return seconds, note


def start_worker(processes: Processes, name: str = "worker") -> int:
    """Start a worker and wait until it has its partitions; returns its process id."""
    port = free_ports(name)[name]
    processes.start(name, "pipeline", "worker", "--metrics-address", port, "--instance-id", name)
    processes.wait_ready(name, f"http://127.0.0.1:{port}/readyz")
    return processes.pid(name)


def feed(
    processes: Processes, backends: embedded.Backends, worker: int, records: Iterable[EncodedRecord], attempts: int
) -> float:
    """CPU seconds of the worker, which is ``PATIENT``, until the index has ``attempts`` attempts in total."""
    before = cpu_seconds(worker)
    # Sending while the worker reads would make its work more expensive: both share caches and hyper-threads.
    # A stopped process sends no heartbeats, hence the long session timeout of ``PATIENT``.
    os.kill(worker, signal.SIGSTOP)
    try:
        send(backends.bootstrap_servers, DECISIONS.name, records)
    finally:
        os.kill(worker, signal.SIGCONT)
    while _documents(backends.opensearch_url) < attempts:
        processes.check()
        time.sleep(0.2)
    return cpu_seconds(worker) - before


def _documents(index_url: str) -> int:
    httpx.post(f"{index_url}/schedulerlog-attempts*/_refresh", timeout=30)
    answer = httpx.get(f"{index_url}/schedulerlog-attempts*/_count", timeout=30).json()
    return int(answer.get("count", 0))


def read(client: str, servers: str, topic: str, records: int, warm_up: int = 0) -> float:
    """CPU seconds of a process that counts the verdicts of ``records`` records, after ``warm_up`` others."""
    command = [sys.executable, "-m", "bench.consumers", client, servers, topic, str(records), str(warm_up)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_seconds"])


def columns(attempts: int = 20, rows: int = 40_000) -> Result:
    """The cost of one record per device through Faust, compared with the same verdicts in columns."""
    with provisioned(FOLDER / "columns") as (backends, _):
        servers = backends.bootstrap_servers
        records = [each for one in cluster.attempts(NODES, attempts) for each in one]
        in_columns = send(servers, "bench.columns", records)
        by_device = send(servers, "bench.devices", one_per_device(records, rows))
        columns_seconds = read("faust", servers, "bench.columns", in_columns)
        devices_seconds = read("faust", servers, "bench.devices", by_device)
    figures = [
        Figure("one record per device", rows / devices_seconds, "verdicts per CPU second"),
        Figure("columns", attempts * VERDICTS / columns_seconds, "verdicts per CPU second"),
    ]
    return Result(
        "columns",
        "Device verdicts in columns against one record per device, both decoded and counted by a Faust agent",
        f"{attempts * VERDICTS:,} verdicts in {in_columns} records; {rows:,} in as many",
        against_first(figures, lambda first, this: this / first),
    )


def one_per_device(records: list[EncodedRecord], rows: int) -> Iterator[EncodedRecord]:
    left = rows
    for record in records:
        event = decode(record.value, record.headers)
        if isinstance(event, DevicesJudged):
            for row in event.each_device(lambda _node, _revision: None):
                yield EncodedRecord(record.key, orjson.dumps(row._asdict()), [("ce_type", b"bench.device")])
                left -= 1
                if not left:
                    return
