"""One filter call by fleet size and running pods, with and without records, beside HAMi and a bare handler."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import httpx
import numpy as np
import orjson

from bench import fleet
from bench.backends import FOLDER, start_bare
from bench.cluster import DEVICES_PER_NODE
from bench.cpu import cpu_seconds, resident_mib
from bench.report import Figure, Result
from demo.processes import Processes, free_ports
from scheduler.devices.cluster_state import ClusterColumns

CALLS = 40
WARM_UP_NODES = 100_000
"""Nodes judged before measuring: they fill three files of the spool, so that it deletes files as in operation."""
SIZES = ((1_000, 0), (1_000, 5_000), (5_000, 0), (5_000, 5_000), (5_000, 40_000))
CHANGED_SHARE = 100
"""One in so many nodes changes between two calls."""
RECORDED, SILENT = "", "silent"
# Measured on another machine, so these get no ratio.
HAMI_MS = {(1_000, 0): 44, (5_000, 0): 290, (5_000, 40_000): 1_995}
"""CPU ms of the filter of HAMi v2.10.0 in Go without records, measured elsewhere with its code and a fake client."""
UPDATES = 20_000


@dataclass(frozen=True, slots=True)
class Case:
    nodes: int
    pods: int
    changed: int
    recording: str

    def text(self, *, fits: bool) -> str:
        fitting = "a tenth of the nodes fits" if fits else "no node fits"
        changing = f"{self.changed:,} changed"
        return (
            f"{self.nodes:,} nodes, {changing}, {self.pods:,} pods, {fitting}, {'not ' * bool(self.recording)}recorded"
        )


def filter_call() -> Result:
    """CPU per POST /filter; all verdicts are in the spool before the answer, and none is sent to Kafka meanwhile."""
    folder = FOLDER / "filter"
    # A real folder: the sync of the spool is part of the call, and a file system in memory would hide it.
    folder.mkdir(parents=True, exist_ok=True)
    with Processes(folder, {}) as processes:
        # The last one: every node changes, the most that there is to record.
        sizes = [*((nodes, pods, nodes // CHANGED_SHARE) for nodes, pods in SIZES), (*SIZES[-1], SIZES[-1][0])]
        cases = [Case(*size, how) for size, how in product(sizes, (RECORDED, SILENT))]
        figures = [figure for case in cases for figure in _measure_process(processes, folder, case)]
        figures.append(_bare(processes))
    hami = [Figure(f"HAMi v2.10.0 in Go, {n:,} nodes, {p:,} pods", ms, "CPU ms per call", note="measured elsewhere")
            for (n, p), ms in HAMI_MS.items()]  # fmt: skip
    return Result(
        "filter",
        "POST /filter: HTTP body in, reply bytes out, every verdict encoded and on disk; beside HAMi without records",
        f"{CALLS} calls, {DEVICES_PER_NODE} devices a node; changed: before each call; ratio: to one without records",
        (*_with_ratios(figures), *hami),
    )


def _measure_process(processes: Processes, folder: Path, case: Case) -> Iterator[Figure]:
    port = free_ports("deciding")["deciding"]
    spool = folder / f"spool-{case.nodes}-{case.pods}-{case.changed}-{case.recording}"
    numbers = map(str, (case.nodes, case.pods, case.changed, port))
    processes.start("deciding", "bench.deciding", *numbers, str(spool), *filter(None, [case.recording]))
    processes.wait_ready("deciding", f"http://127.0.0.1:{port}/readyz")
    for fits in (False, True):
        url = f"http://127.0.0.1:{port}/filter"
        yield measure(case.text(fits=fits), url, processes.pid("deciding"), case.nodes, fits=fits)
    processes.stop("deciding")


def measure(path: str, url: str, pid: int, nodes: int, *, fits: bool) -> Figure:
    warming_up = WARM_UP_NODES // nodes
    # Made before the clock starts, and each of another pod, as a scheduler asks.
    asked = list(fleet.bodies(nodes, CALLS + warming_up, fits=fits))
    with httpx.Client(timeout=60) as client:
        for body in asked[:warming_up]:
            client.post(url, content=body).raise_for_status()
        before, times = cpu_seconds(pid), []
        for body in asked[warming_up:]:
            began = time.perf_counter()
            client.post(url, content=body).raise_for_status()
            times.append(time.perf_counter() - began)
        cost = (cpu_seconds(pid) - before) / CALLS * 1000
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    note = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {resident_mib(pid):.0f} MiB"
    return Figure(path, cost, "CPU ms per call", note=note)


def _bare(processes: Processes) -> Figure:
    """The cost of HTTP: the same bodies, and an answer as long as one that names every node."""
    port = free_ports("bare")["bare"]
    # About the length of 5,000 names with a reason each.
    start_bare(processes, port, b" " * 400_000)
    return measure("a handler of as many bytes", f"http://127.0.0.1:{port}/filter", processes.pid("bare"), 5_000,
                   fits=False)  # fmt: skip


def _with_ratios(figures: list[Figure]) -> Iterator[Figure]:
    silent = {figure.path.replace("not recorded", "recorded"): figure.value for figure in figures}
    for figure in figures:
        base = silent.get(figure.path) if not figure.path.endswith("not recorded") else None
        ratio = round(figure.value / base, 2) if base and base != figure.value else None
        yield Figure(figure.path, figure.value, figure.unit, ratio, figure.note)


def pod_update() -> Result:
    """A watch event of one pod, decoded and applied."""
    nodes = 5_000
    columns = ClusterColumns()
    fleet_of = fleet.manifest(nodes, nodes * DEVICES_PER_NODE)
    for node in fleet_of.nodes.values():
        columns.apply_node(node)
    for pod in fleet_of.pods.values():
        columns.apply_pod(pod)
    changed = [
        fleet.running_pod(n, n % nodes, (n // nodes + 1) % DEVICES_PER_NODE, 1_000 + n % 7, 5) for n in range(UPDATES)
    ]
    # Each pod really moves: an update that changes nothing is recognized and costs less.
    lines = [orjson.dumps({"type": "MODIFIED", "object": pod}) for pod in changed]
    # Decoding counts: a watch delivers bytes.
    began = time.process_time()
    for line in lines:
        columns.apply_pod(orjson.loads(line)["object"])
    cost = (time.process_time() - began) / UPDATES * 1e6
    return Result(
        "pod-update",
        "One line of a watch, decoded and applied to the columns: a pod moves from one device to another",
        f"{UPDATES:,} updates among {len(fleet_of.pods):,} pods on {nodes:,} nodes",
        (Figure("a changed pod", cost, "CPU us"),),
    )
