"""64 callers of POST /filter at once on 5,000 nodes, beside one caller and beside a bare handler."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus

import numpy as np

from dev.bench import fleet
from dev.bench.backends import FOLDER, start_bare
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.cpu import read_cpu_seconds, read_resident_mib
from dev.bench.filter import CHANGED_SHARE
from dev.bench.mixed_readers import read_status
from dev.bench.report import Figure, Result
from dev.demo.processes import Processes, find_free_ports

NODES, PODS = 5_000, 40_000
CALLERS, CALLS = 64, 1_280


def measure_filter_callers() -> Result:
    """Measure the calls a second and their times. A decision takes the event loop, so callers wait in turn, for no
    longer than the calls take one after the other."""
    folder = FOLDER / "filter-callers"
    folder.mkdir(parents=True, exist_ok=True)
    ports = find_free_ports("scheduler", "bare")
    with Processes(folder, {}) as processes:
        numbers = map(str, (NODES, PODS, NODES // CHANGED_SHARE, ports["scheduler"]))
        processes.start("scheduler", "dev.bench.deciding", *numbers, str(folder / "spool"))
        processes.wait_ready("scheduler", f"http://127.0.0.1:{ports['scheduler']}/readyz")
        start_bare(processes, ports["bare"], b" " * 400_000)
        bodies = list(fleet.iterate_bodies(NODES, CALLS, fits=False))
        scheduler, pid = ports["scheduler"], processes.get_pid("scheduler")
        _ask(scheduler, bodies[:100], 1)
        memory = read_resident_mib(pid)
        figures = [
            *_measure("one caller", scheduler, bodies[: CALLS // 8], 1, pid),
            *_measure(f"{CALLERS} callers", scheduler, bodies, CALLERS, pid),
            *_measure(
                f"{CALLERS} callers of a bare handler", ports["bare"], bodies, CALLERS, processes.get_pid("bare")
            ),
            Figure("the scheduler's memory before", memory, "MiB"),
            Figure("the scheduler's memory after", read_resident_mib(pid), "MiB"),
        ]
    return Result(
        "filter-callers",
        f"POST /filter by {CALLERS} callers at once against one caller, and against a handler of as many bytes",
        f"{CALLS:,} calls of {CALLERS} callers, {NODES:,} nodes x {DEVICES_PER_NODE} with {PODS:,} running pods, "
        "no node fits; every verdict in the spool before the answer",
        tuple(figures),
    )


def _measure(who: str, port: str, bodies: Sequence[bytes], callers: int, pid: int) -> Iterator[Figure]:
    cpu, began = read_cpu_seconds(pid), time.perf_counter()
    times = _ask(port, bodies, callers)
    seconds = time.perf_counter() - began
    cost = (read_cpu_seconds(pid) - cpu) / len(times) * 1000
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    note = f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms; {len(times):,} calls, no error; CPU {cost:.1f} ms a call"
    yield Figure(who, len(times) / seconds, "calls/s", note=note)


def _ask(port: str, bodies: Sequence[bytes], callers: int) -> list[float]:
    """Ask with every body, and return the seconds of each call."""
    return asyncio.run(_call_in_turn(int(port), iter(bodies), callers))


async def _call_in_turn(port: int, bodies: Iterator[bytes], callers: int) -> list[float]:
    times: list[float] = []

    async def call() -> None:
        # A client of HTTP would take more CPU than what it asks.
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        for body in bodies:
            began = time.perf_counter()
            writer.write(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            if (status := await read_status(reader)) != HTTPStatus.OK:
                raise RuntimeError(f"a call was answered with {status}")
            times.append(time.perf_counter() - began)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(call() for _ in range(callers)))
    return times
