"""One filter call with all its records, compared with a handler that answers the same bytes without deciding."""

import json
import time

import httpx
import numpy as np

from dev.bench import cluster
from dev.bench.backends import FOLDER, start_bare
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.cpu import cpu_seconds, resident_mib
from dev.bench.report import Figure, Result, against_first
from dev.demo.processes import free_ports
from dev.demo.reader import schedulerlog_path
from dev.demo.stack import stack

NODES = 5_000
CALLS = 20
HAMI = "HAMi v2.10.0 in Go, measured elsewhere: 290 ms without records, 966 ms with a log line for every device"


def published() -> Result:
    """CPU per POST /filter on 5,000 x 8 devices, and the time until the API gives the answer."""
    folder = FOLDER / "published"
    folder.mkdir(parents=True)
    names = cluster.write(NODES, folder / "source.json")
    with stack(folder, folder / "source.json") as running:
        scheduler, processes = running.url("scheduler"), running.processes
        body = json.dumps({"Pod": cluster.a_hopeless_pod(), "Nodes": None, "NodeNames": names}).encode()
        answer = httpx.post(f"{scheduler}/filter", content=body, timeout=60).content
        bare = free_ports("bare")["bare"]
        start_bare(processes, bare, answer)
        figures = [
            _measure("a handler of the same bytes", f"http://127.0.0.1:{bare}/filter", processes.pid("bare"), body),
            _measure("the scheduler", f"{scheduler}/filter", processes.pid("scheduler"), body),
        ]
        seen = _until_answered(scheduler, running.url("api"), names)
    figures.append(Figure("POST /filter to the API's answer", seen * 1000, "ms, p50 of 10"))
    return Result(
        "published",
        f"POST /filter, every verdict in the spool before the answer, against answering the same bytes. {HAMI}",
        f"{CALLS} calls on {NODES:,} nodes x {DEVICES_PER_NODE} devices with {NODES:,} running pods, all refused",
        (*against_first(figures[:2], lambda first, this: this / first), figures[2]),
    )


def _measure(path: str, url: str, pid: int, body: bytes) -> Figure:
    with httpx.Client(timeout=60) as client:
        client.post(url, content=body)
        before, times = cpu_seconds(pid), []
        for _ in range(CALLS):
            began = time.perf_counter()
            client.post(url, content=body).raise_for_status()
            times.append(time.perf_counter() - began)
        cost = (cpu_seconds(pid) - before) / CALLS * 1000
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return Figure(
        path, cost, "CPU ms per call", note=f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {resident_mib(pid):.0f} MiB"
    )


def _until_answered(scheduler: str, api: str, names: list[str], tries: int = 10) -> float:
    """Seconds from sending the pod to the scheduler until the API has its schedulerlog, the median of ``tries``."""
    times = []
    with httpx.Client(timeout=60) as client:
        for number in range(1, tries + 1):
            pod = cluster.a_hopeless_pod(number)
            began = time.perf_counter()
            client.post(f"{scheduler}/filter", json={"Pod": pod, "Nodes": None, "NodeNames": names})
            path = api + schedulerlog_path(f"llm/hopeless-{number}") + "?limit=1"
            while client.get(path).status_code != httpx.codes.OK:
                time.sleep(0.005)
            times.append(time.perf_counter() - began)
    return float(np.median(times))
