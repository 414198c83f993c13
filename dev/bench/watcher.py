"""Memory and CPU of ``ingest kube-events`` on a large cluster that changes all the time."""

import json
import time
from pathlib import Path
from typing import Final

import httpx

from dev.bench.backends import FOLDER
from dev.bench.cpu import read_cpu_seconds
from dev.bench.report import Figure, Result
from dev.bench.watched_cluster import NODES, PODS, SUSPENDED, UNWATCHED, WORKLOADS
from dev.demo.processes import find_free_ports
from dev.demo.stack import provisioned

SECONDS: Final = 60
"""Time that is measured."""
_WINDOW_SECONDS: Final = 5
_SETTLED: Final = 0.5
"""Share of a core below which the first lists are read."""
_LONGEST_START: Final = 600


def measure_watcher() -> Result:
    """Measure the start, the peak of the memory, and the CPU with changes. Goals: 300 MiB, 0.2 of a core."""
    ports = find_free_ports("cluster")
    with provisioned(FOLDER / "watcher") as (backends, processes):
        processes.start("cluster", "dev.bench.watched_cluster", ports["cluster"])
        url = f"http://127.0.0.1:{ports['cluster']}"
        processes.wait_ready("cluster", f"{url}/apis")
        kubeconfig = _write_kubeconfig(FOLDER / "watcher" / "kubeconfig", url)
        begun = time.monotonic()
        processes.start(
            "watcher", "ingest", "kube-events", "--kubeconfig", str(kubeconfig), "--kafka", backends.bootstrap_servers
        )
        pid = processes.get_pid("watcher")
        start_seconds = _wait_until_settled(pid, f"{url}{UNWATCHED}")
        listed = time.monotonic() - begun
        before = read_cpu_seconds(pid)
        time.sleep(SECONDS)
        share = (read_cpu_seconds(pid) - before) / SECONDS
        processes.check()
        return Result(
            "watcher",
            "`ingest kube-events`: judges refused pods, explains workloads without pods; goals: 300 MiB, 0.2 core",
            f"{PODS:,} pods, {NODES:,} nodes, {WORKLOADS:,} Jobs with Workloads of Kueue, {SUSPENDED:,} of them held; "
            "15 changes of pods, 4 of nodes, 2 of Jobs and Workloads and one event a second",
            (
                Figure("peak of its memory", _read_peak_mib(pid), "MiB"),
                Figure("CPU while it follows", round(share, 3), "core"),
                Figure("CPU of the start", start_seconds, "CPU s", note=f"{listed:.0f} s until everything is read"),
            ),
        )


def _write_kubeconfig(path: Path, url: str) -> Path:
    named = {"name": "bench"}
    configuration = {
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [named | {"cluster": {"server": url}}], "users": [named | {"user": {"token": "none"}}],
        "contexts": [named | {"context": {"cluster": "bench", "user": "bench"}}],
    }  # fmt: skip
    path.write_text(json.dumps(configuration))
    return path


def _wait_until_settled(pid: int, unwatched: str) -> float:
    """Wait until all lists are read and the waits explained, and return the CPU seconds until then."""
    deadline, begun = time.monotonic() + _LONGEST_START, read_cpu_seconds(pid)
    before, quiet = begun, 0
    while time.monotonic() < deadline:
        time.sleep(_WINDOW_SECONDS)
        now = read_cpu_seconds(pid)
        # Twice, so that a pause between two lists is not taken for the end.
        is_listed = httpx.get(unwatched, timeout=30).json()["lists"] == 0
        quiet = quiet + 1 if is_listed and now - before < _SETTLED * _WINDOW_SECONDS else 0
        if quiet == 2:
            return now - begun
        before = now
    raise RuntimeError(f"the watcher has not read its lists in {_LONGEST_START} s: is the machine overloaded?")


def _read_peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kibibytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return round(kibibytes / 1024, 1)
