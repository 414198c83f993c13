"""A thousand watchers of a pod each, while attempts come at a steady rate: the API against a bare handler."""

import asyncio
import os
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
from aiokafka import AIOKafkaProducer

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.cpu import read_cpu_seconds, read_resident_mib
from dev.bench.report import Figure, Result
from dev.bench.services import start_worker
from dev.demo.processes import Processes, find_free_ports
from dev.demo.reader import build_schedulerlog_path
from dev.demo.stack import provisioned
from schemas.topics import ATTEMPTS, DECISIONS

NODES = 10
WATCHERS, A_SECOND = 1_000, 100
SECONDS, WARM_SECONDS = 30, 10
"""Each pod is tried every ten seconds: the warm-up is the first attempt of each, the others are retries."""
_LINE_BYTES = 2**20
_AT_ONCE = 50
"""Connections that are opened at the same time."""


@dataclass(slots=True)
class Watched:
    """Results of the watchers of one server. Index of all: the pod's number."""

    url: str
    sent_at: dict[int, float] = field(default_factory=dict)
    """Time of the latest attempt of a pod, until a watcher sees it."""
    delays: list[float] = field(default_factory=list)

    async def watch(self, pod: int, path: str) -> asyncio.StreamWriter:
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=_LINE_BYTES)
        head = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept: text/event-stream\r\n\r\n"
        writer.write(head.encode())
        status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]
        if not status.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{self.url} answered {status.decode(errors='replace')}")
        asyncio.get_running_loop().create_task(self._read(pod, reader)).add_done_callback(_raise)
        return writer

    async def _read(self, pod: int, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b"data: ") and b'"BOOKMARK"' not in line[:30] and pod in self.sent_at:
                self.delays.append(time.perf_counter() - self.sent_at.pop(pod))


def _raise(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.result()


def measure_watch() -> Result:
    """Measure from the decision, the time at which its records are sent, through Kafka, worker and Kafka."""
    with provisioned(FOLDER / "watch") as (backends, processes):
        ports = find_free_ports("api", "bare")
        start_worker(processes)
        processes.start("api", "api", "serve", "--listen", ports["api"])
        processes.wait_ready("api", f"http://127.0.0.1:{ports['api']}/readyz")
        processes.start("bare", "dev.bench.bare_watch", ports["bare"], backends.bootstrap_servers, ATTEMPTS.name)
        processes.wait_ready("bare", f"http://127.0.0.1:{ports['bare']}/")
        figures = asyncio.run(_measure(processes, backends.bootstrap_servers, ports))
    return Result(
        "watch",
        "From a decision to those who watch its pod, against the record's own bytes by its key as Server-Sent Events. "
        "Goals of the API: p99 200 ms, 300 MB",
        f"{WATCHERS:,} watchers of a pod each at both at once, {A_SECOND} attempts/s of {NODES} nodes for {SECONDS} s; "
        f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores",
        tuple(figures),
    )


async def _measure(processes: Processes, servers: str, ports: dict[str, str]) -> list[Figure]:
    api, bare = (Watched(f"http://127.0.0.1:{ports[name]}") for name in ("api", "bare"))
    before = read_resident_mib(processes.get_pid("api"))
    open_now: list[asyncio.StreamWriter] = []
    for first in range(0, WATCHERS, _AT_ONCE):
        pods = range(first, first + _AT_ONCE)
        ours = [api.watch(pod, build_schedulerlog_path(f"llm/hopeless-{pod}") + "?watch=true") for pod in pods]
        theirs = [bare.watch(pod, f"/default/llm/hopeless-{pod}") for pod in pods]
        open_now += await asyncio.gather(*ours, *theirs)
    await _send(servers, WARM_SECONDS, api, bare)
    for server in (api, bare):
        server.sent_at.clear()
        server.delays.clear()
    spent = {name: read_cpu_seconds(processes.get_pid(name)) for name in ("api", "bare")}
    await _send(servers, SECONDS, api, bare)
    await asyncio.sleep(3)
    processes.check()
    figures = []
    for name, path, watched in (("bare", "the record's own bytes", bare), ("api", "the API", api)):
        cost = (read_cpu_seconds(processes.get_pid(name)) - spent[name]) / len(watched.delays) * 1000
        p50, p99 = (float(delay) * 1000 for delay in np.percentile(watched.delays, [50, 99]))
        seen = f"{len(watched.delays):,} of {SECONDS * A_SECOND:,} seen; {cost:.2f} ms of CPU each"
        figures += [Figure(f"{path}, p50", p50, "ms", note=seen), Figure(f"{path}, p99", p99, "ms")]
    pid = processes.get_pid("api")
    figures.append(
        Figure("the API's memory", read_resident_mib(pid), "MiB", note=f"{before:.0f} before the watchers came")
    )
    for writer in open_now:
        writer.close()
    return figures


async def _send(servers: str, seconds: int, *watched: Watched) -> None:
    """Send attempts of one pod after the other, at fixed times."""
    columns = cluster.build_columns(NODES)
    async with AIOKafkaProducer(
        bootstrap_servers=servers, compression_type="zstd", enable_idempotence=True
    ) as producer:
        began = time.perf_counter()
        for number in range(seconds * A_SECOND):
            await asyncio.sleep(max(0.0, began + number / A_SECOND - time.perf_counter()))
            pod = number % WATCHERS
            records = cluster.encode_attempt(columns, pod)
            for server in watched:
                server.sent_at[pod] = time.perf_counter()
            for record in records:
                await producer.send(DECISIONS.name, record.value, key=record.key, headers=record.headers)
