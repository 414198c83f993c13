"""The delay from a decision to its answer by the API, while attempts come at a steady rate.

Three times: on a machine that is otherwise quiet, with OpenSearch stopped in the middle, and beside a process that uses
one core.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.cpu import read_cpu_seconds
from dev.bench.report import Figure, Result
from dev.demo.reader import build_schedulerlog_path
from dev.demo.stack import Stack, stack

NODES, A_SECOND = 500, 20
SECONDS = 40
WARM_SECONDS = 5
STOPPED_SECONDS = 60
"""Additional seconds of a run, in whose middle OpenSearch stands still."""
POLL_SECONDS = 0.004
WATCHED = 2
"""One of so many attempts is watched, so that the requests to the API do not become the load."""


@dataclass(slots=True)
class Delays:
    """Seconds, one entry per attempt."""

    filters: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    late: int = 0
    """Attempts that were due before the scheduler had answered the previous one."""


def measure_steady() -> Result:
    """Measure from the decision, the scheduler's answer to POST /filter, through spool, Kafka, worker and Kafka."""
    folder = FOLDER / "steady"
    folder.mkdir(parents=True, exist_ok=True)
    names = cluster.write_cluster(NODES, folder / "source.json")
    figures: list[Figure] = []
    with stack(folder, folder / "source.json") as running:
        load = _Load(running, names)
        figures += load.measure("quiet", SECONDS)
        figures += load.measure("OpenSearch stopped", SECONDS + STOPPED_SECONDS, stopped_seconds=STOPPED_SECONDS)
        with _burning_process():
            figures += load.measure("beside a process that uses one core", SECONDS)
    return Result(
        "steady",
        "From the scheduler's answer until the API gives the schedulerlog, at a steady rate. Goals for p99: quiet 60 "
        f"ms; OpenSearch stopped (SIGSTOP) for {STOPPED_SECONDS} s in the middle 150 ms; beside a process that uses "
        "one core 400 ms",
        f"{A_SECOND} attempts a second of {NODES} nodes x {DEVICES_PER_NODE} devices "
        f"({A_SECOND * NODES * DEVICES_PER_NODE:,} verdicts/s) for {SECONDS} s or longer, one of {WATCHED} watched; "
        f"{os.cpu_count()} cores",
        tuple(figures),
    )


@contextmanager
def _burning_process() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burning:
        try:
            yield
        finally:
            burning.kill()


class _Load:
    """Attempts at a running stack; every pod has another number."""

    def __init__(self, running: Stack, names: list[str]) -> None:
        self._running, self._names = running, names
        self._next = 0

    def measure(self, where: str, seconds: int, *, stopped_seconds: int = 0) -> list[Figure]:
        """Measure the delays of ``seconds``, with OpenSearch stopped for ``stopped_seconds`` in the middle of them."""
        running = self._running
        pids = {name: running.processes.get_pid(name) for name in ("scheduler", "worker", "index", "api")}
        pids["OpenSearch"] = running.backends.opensearch.pid
        before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
        delays = asyncio.run(self._run(seconds, stopped_seconds))
        running.processes.check()
        spent = [
            f"{name} {(read_cpu_seconds(pid) - before[name]) / (seconds + WARM_SECONDS) * 100:.0f} %"
            for name, pid in pids.items()
        ]
        p50, p99 = np.percentile(delays.answers, [50, 99]) * 1000
        filter_p50, filter_p99 = np.percentile(delays.filters, [50, 99]) * 1000
        slowest = f"{max(delays.answers) * 1000:.0f} at most; load average {os.getloadavg()[0]:.1f}"
        return [
            Figure(f"{where}: decision to API, p50", float(p50), "ms", note=f"CPU of a core: {', '.join(spent)}"),
            Figure(f"{where}: decision to API, p99", float(p99), "ms", note=slowest),
            Figure(f"{where}: POST /filter, p50", float(filter_p50), "ms"),
            Figure(f"{where}: POST /filter, p99", float(filter_p99), "ms", note=f"{delays.late} sent late"),
        ]

    async def _run(self, seconds: int, stopped_seconds: int) -> Delays:
        delays, watching = Delays(), set[asyncio.Task[None]]()
        stop_at = WARM_SECONDS + (seconds - stopped_seconds) / 2
        began = time.perf_counter()
        connection = await _Connection.open(self._running.build_url("scheduler"))
        stopping = asyncio.create_task(self._stop_index(stop_at, stopped_seconds))
        try:
            for number in range((seconds + WARM_SECONDS) * A_SECOND):
                # At fixed times, not after the previous answer: else a slow server would be asked less often and look
                # fast.
                due = began + number / A_SECOND
                delays.late += time.perf_counter() > due + 1 / A_SECOND
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                # Connections, indices and the JVM's compiled code are not there yet in the first seconds.
                if watched := await self._try_next_pod(connection, delays, is_warm=number >= WARM_SECONDS * A_SECOND):
                    watching.add(watched)
            await asyncio.gather(*watching)
        finally:
            await stopping
            await connection.close()
        return delays

    async def _try_next_pod(
        self, connection: "_Connection", delays: Delays, *, is_warm: bool
    ) -> "asyncio.Task[None] | None":
        """Decide about the next pod; the task that watches for its answer, if it is to be watched."""
        number, self._next = self._next, self._next + 1
        pod = cluster.build_hopeless_pod(number)
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": self._names}).encode()
        sent_at = time.perf_counter()
        await connection.request("POST", "/filter", body)
        answered_at = time.perf_counter()
        if not is_warm:
            return None
        delays.filters.append(answered_at - sent_at)
        if number % WATCHED:
            return None
        return asyncio.create_task(
            _watch(self._running.build_url("api"), f"llm/hopeless-{number}", answered_at, delays)
        )

    async def _stop_index(self, after_seconds: float, seconds: int) -> None:
        if not seconds:
            return
        await asyncio.sleep(after_seconds)
        self._running.backends.opensearch.pause()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._running.backends.opensearch.resume()


async def _watch(api: str, pod: str, decided: float, delays: Delays) -> None:
    connection = await _Connection.open(api)
    path = build_schedulerlog_path(pod) + "?limit=1"
    while await connection.request("GET", path) != 200:
        if time.perf_counter() - decided > 60:
            raise RuntimeError(f"the API does not know {pod} a minute after it was decided")
        await asyncio.sleep(POLL_SECONDS)
    delays.answers.append(time.perf_counter() - decided)
    await connection.close()


class _Connection:
    """One request after the other on a plain socket: a full client would use most of the cores."""

    def __init__(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host, self._reader, self._writer = host, reader, writer

    @classmethod
    async def open(cls, url: str) -> "_Connection":
        parts = urlsplit(url)
        return cls(parts.netloc, *await asyncio.open_connection(parts.hostname, parts.port))

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        """Send a request and return its status; the body of the answer is read and dropped."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head_lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in head_lines if line.startswith(b"content-length"))
        await self._reader.readexactly(length)
        return int(head_lines[0].split()[1])

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
