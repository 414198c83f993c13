"""The delay from a decision to its answer by the API, while attempts come at a steady rate."""

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np

from bench import cluster
from bench.backends import FOLDER
from bench.cluster import DEVICES_PER_NODE
from bench.cpu import cpu_seconds
from bench.report import Figure, Result
from demo.reader import schedulerlog_path
from demo.stack import stack

NODES, A_SECOND = 500, 20
SECONDS = 40
WARM_SECONDS = 5
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


def steady() -> Result:
    """The decision is the scheduler's answer to POST /filter; its way leads through spool, Kafka, worker and Kafka."""
    folder = FOLDER / "steady"
    folder.mkdir(parents=True, exist_ok=True)
    names = cluster.write(NODES, folder / "source.json")
    with stack(folder, folder / "source.json") as running:
        pids = {name: running.processes.pid(name) for name in ("scheduler", "worker", "api")}
        pids["OpenSearch"] = running.backends.opensearch.pid
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        delays = asyncio.run(_run(running.url("scheduler"), running.url("api"), names))
        running.processes.check()
        spent = [
            f"{name} {(cpu_seconds(pid) - before[name]) / (SECONDS + WARM_SECONDS) * 100:.0f} %"
            for name, pid in pids.items()
        ]
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    p50, p99 = np.percentile(delays.answers, [50, 99]) * 1000
    filter_p50, filter_p99 = np.percentile(delays.filters, [50, 99]) * 1000
    return Result(
        "steady",
        "From the scheduler's answer until the API gives the schedulerlog, at a steady rate. Goal: p99 below 250 ms",
        f"{A_SECOND} attempts a second of {NODES} nodes x {DEVICES_PER_NODE} devices "
        f"({A_SECOND * NODES * DEVICES_PER_NODE:,} verdicts/s) for {SECONDS} s, {len(delays.answers)} watched; {load}",
        (
            Figure("decision to API, p50", float(p50), "ms", note=f"CPU of a core: {', '.join(spent)}"),
            Figure("decision to API, p99", float(p99), "ms", note=f"{max(delays.answers) * 1000:.0f} at most"),
            Figure("POST /filter, p50", float(filter_p50), "ms"),
            Figure("POST /filter, p99", float(filter_p99), "ms", note=f"{delays.late} sent late"),
        ),
    )


async def _run(scheduler: str, api: str, names: list[str]) -> Delays:
    delays, watching = Delays(), set[asyncio.Task[None]]()
    began = time.perf_counter()
    connection = await _Connection.to(scheduler)
    for number in range((SECONDS + WARM_SECONDS) * A_SECOND):
        # At fixed times, not after the previous answer: else a slow server would be asked less often and look fast.
        due = began + number / A_SECOND
        delays.late += time.perf_counter() > due + 1 / A_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        pod = cluster.a_hopeless_pod(number)
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()
        sent_at = time.perf_counter()
        await connection.request("POST", "/filter", body)
        answered_at = time.perf_counter()
        # Connections, indices and the JVM's compiled code are not there yet in the first seconds.
        if number >= WARM_SECONDS * A_SECOND:
            delays.filters.append(answered_at - sent_at)
            if number % WATCHED == 0:
                watching.add(asyncio.create_task(_watch(api, f"llm/hopeless-{number}", answered_at, delays)))
    await asyncio.gather(*watching)
    return delays


async def _watch(api: str, pod: str, decided: float, delays: Delays) -> None:
    connection = await _Connection.to(api)
    path = schedulerlog_path(pod) + "?limit=1"
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
    async def to(cls, url: str) -> "_Connection":
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
