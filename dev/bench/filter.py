"""One filter call by fleet size and running pods, with and without records, beside HAMi and a bare handler."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import orjson

from dev.bench import fleet
from dev.bench.backends import FOLDER, collector, start_bare
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.cpu import read_cpu_seconds, read_resident_mib
from dev.bench.report import Figure, Result
from dev.demo.processes import Processes, find_free_ports
from engine.fit.devices.cluster_state import ClusterColumns

CALLS = 40
SMALL_FLEET_CALLS = 4_000
"""Calls times nodes of a fleet whose calls are too short to be measured in tens."""
CALLS_IN_TURN = 5
MAX_WARM_UP_CALLS = 500
WARM_UP_NODES = 100_000
"""Nodes judged before measuring: they fill three files of the spool, so that it deletes files as in operation."""
SIZES = ((10, 0), (1_000, 0), (1_000, 5_000), (5_000, 0), (5_000, 5_000), (5_000, 40_000))
TRIES = 10
"""Calls about one pod, of which all but the first find nothing new."""
CHANGED_SHARE = 100
"""One in so many nodes changes between two calls."""
RECORDED, SILENT, TRACED = "", "silent", "traced"
# Measured on another machine, so these get no ratio.
HAMI_MS = {(1_000, 0): 44, (5_000, 0): 290, (5_000, 40_000): 1_995}
"""CPU ms of the filter of HAMi v2.10.0 in Go without records, measured elsewhere with its code and a fake client."""
UPDATES = 20_000


@dataclass(frozen=True, slots=True)
class FilterLoad:
    nodes: int
    pods: int
    changed: int
    recording: str

    @property
    def name(self) -> str:
        return self.recording or "recording"

    def describe(self, *, fits: bool, tries: int = 1) -> str:
        fitting = "a tenth of the nodes fits" if fits else "no node fits"
        if tries > 1:
            fitting += f", {tries - 1} calls in {tries} repeat"
        changing = f"{self.changed:,} changed"
        how = {RECORDED: "recorded", SILENT: "not recorded", TRACED: "recorded with a span"}[self.recording]
        return f"{self.nodes:,} nodes, {changing}, {self.pods:,} pods, {fitting}, {how}"


def measure_filter_call() -> Result:
    """Measure the CPU per POST /filter; all verdicts are in the spool before the answer, and none goes to Kafka
    meanwhile."""
    folder = FOLDER / "filter"
    # A real folder: the sync of the spool is part of the call, and a file system in memory would hide it.
    folder.mkdir(parents=True, exist_ok=True)
    with collector() as url, Processes(folder, {}) as processes:
        # The last one: every node changes, the most that there is to record.
        sizes = [*((nodes, pods, nodes // CHANGED_SHARE) for nodes, pods in SIZES), (*SIZES[-1], SIZES[-1][0])]
        figures = [figure for size in sizes for figure in _measure_size(processes, folder, url, *size)]
        figures += _measure_bare(processes)
    hami = [Figure(f"HAMi v2.10.0 in Go, {n:,} nodes, {p:,} pods", ms, "CPU ms per call", note="measured elsewhere")
            for (n, p), ms in HAMI_MS.items()]  # fmt: skip
    return Result(
        "filter",
        "POST /filter: HTTP body in, reply bytes out, every verdict encoded and on disk; beside HAMi without records",
        f"{CALLS} calls, {DEVICES_PER_NODE} devices a node; changed: before each call; ratio: to one "
        "without records; of one with a span to one without",
        (*_add_ratios(figures), *hami),
    )


def _measure_size(
    processes: Processes, folder: Path, url: str, nodes: int, pods: int, changed: int
) -> Iterator[Figure]:
    """Measure processes that run at the same time and answer in turns, so that other work costs all of them as much."""
    # The cost of a span is that of a call: without pods it is the greatest part.
    ways = (RECORDED, SILENT, TRACED) if not pods else (RECORDED, SILENT)
    cases = [FilterLoad(nodes, pods, changed, how) for how in ways]
    ports = find_free_ports(*(case.name for case in cases))
    for case in cases:
        spool = folder / f"spool-{nodes}-{pods}-{changed}-{case.recording}"
        numbers = map(str, (nodes, pods, changed, ports[case.name]))
        tracing = {"SCHEDULERLOG_OTLP_ENDPOINT": url} if case.recording == TRACED else {}
        words = [SILENT] if case.recording == SILENT else []
        processes.start(case.name, "dev.bench.deciding", *numbers, str(spool), *words, **tracing)
    for case in cases:
        processes.wait_ready(case.name, f"http://127.0.0.1:{ports[case.name]}/readyz")
    for fits, tries in ((False, 1), (False, TRIES), (True, 1)):
        servers = {
            case.describe(fits=fits, tries=tries): _Server(ports[case.name], processes.get_pid(case.name))
            for case in cases
        }
        yield from measure_servers(servers, nodes, fits=fits, tries=tries)
    for case in cases:
        processes.stop(case.name)


@dataclass(slots=True)
class _Server:
    """A process that answers POST /filter, and what it took."""

    port: str
    pid: int
    cpu: float = 0.0
    times: list[float] = field(default_factory=list)

    def ask(self, client: httpx.Client, bodies: Iterable[bytes]) -> None:
        before = read_cpu_seconds(self.pid)
        for body in bodies:
            began = time.perf_counter()
            client.post(f"http://127.0.0.1:{self.port}/filter", content=body).raise_for_status()
            self.times.append(time.perf_counter() - began)
        self.cpu += read_cpu_seconds(self.pid) - before

    def build_figure(self, path: str) -> Figure:
        p50, p99 = np.percentile(self.times, [50, 99]) * 1000
        note = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {read_resident_mib(self.pid):.0f} MiB"
        return Figure(path, self.cpu / len(self.times) * 1000, "CPU ms per call", note=note)


def measure_servers(servers: Mapping[str, _Server], nodes: int, *, fits: bool, tries: int = 1) -> list[Figure]:
    """Measure each of the servers, and return a figure for each by its path."""
    warming_up = min(WARM_UP_NODES // nodes, MAX_WARM_UP_CALLS) // tries * tries
    calls = max(CALLS, SMALL_FLEET_CALLS // nodes)
    # Made before the clock starts, and each of another pod, as a scheduler asks, or some for each.
    bodies = list(fleet.iterate_bodies(nodes, calls + warming_up, fits=fits, tries=tries))
    with httpx.Client(timeout=60) as client:
        for server in servers.values():
            server.ask(client, bodies[:warming_up])
            server.cpu, server.times = 0.0, []
        for start in range(warming_up, len(bodies), CALLS_IN_TURN):
            for server in servers.values():
                server.ask(client, bodies[start : start + CALLS_IN_TURN])
    return [server.build_figure(path) for path, server in servers.items()]


def _measure_bare(processes: Processes) -> list[Figure]:
    """Measure the cost of HTTP: the same bodies, and an answer as long as one that names every node."""
    port = find_free_ports("bare")["bare"]
    # About the length of 5,000 names with a reason each.
    start_bare(processes, port, b" " * 400_000)
    bare = {"a handler of as many bytes": _Server(port, processes.get_pid("bare"))}
    return measure_servers(bare, 5_000, fits=False)


def _add_ratios(figures: list[Figure]) -> Iterator[Figure]:
    # Those with records are compared with those without, those with spans with those that have records alone.
    values = {figure.path: figure.value for figure in figures}
    for figure in figures:
        path, _, how = figure.path.rpartition(", ")
        base = values.get(f"{path}, {'recorded' if how.endswith('a span') else 'not recorded'}")
        ratio = round(figure.value / base, 2) if base and base != figure.value else None
        yield Figure(figure.path, figure.value, figure.unit, ratio, figure.note)


def measure_pod_update() -> Result:
    """Measure a watch event of one pod, decoded and applied."""
    nodes = 5_000
    columns = ClusterColumns()
    fleet_of = fleet.build_manifest(nodes, nodes * DEVICES_PER_NODE)
    for node in fleet_of.nodes.values():
        columns.apply_node(node)
    for pod in fleet_of.pods.values():
        columns.apply_pod(pod)
    changed = [
        fleet.build_running_pod(n, n % nodes, (n // nodes + 1) % DEVICES_PER_NODE, 1_000 + n % 7, 5)
        for n in range(UPDATES)
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
