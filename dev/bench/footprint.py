"""Memory and CPU of the whole stack for a small cluster: at rest and at a few attempts a second, process by process.

Twice in one run: the services as processes of their own, and as one process (`schedulerlog all`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from dev.bench.backends import FOLDER
from dev.bench.cpu import measure_milliseconds, read_cpu_seconds, read_resident_mib
from dev.bench.report import Figure, Result
from dev.demo import scenarios
from dev.demo.kube_scheduler import read_pod
from dev.demo.stack import OPTIONAL_SERVICES, SEPARATE_SERVICES, TOGETHER, Stack, stack

FORMS: Final[Mapping[str, Sequence[str]]] = {
    "separate": (*SEPARATE_SERVICES, *OPTIONAL_SERVICES),
    "together": TOGETHER,
}
SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "separate": {},
    # Those of the overlay `small`.
    "together": {"SCHEDULERLOG_INDEX_LINGER": "2s", "SCHEDULERLOG_TOPIC_PARTITIONS": "3"},
}
SETTLING_SECONDS: Final = 20
"""Time after readiness in which the stores still compile and arrange what they have."""
RATES: Final = (0, 1, 5, 20)
"""Attempts a second; 0: at rest."""
SECONDS: Final = 30
CALIBRATION: Final = 200_000
BUSY_RATIO: Final = 1.5
"""A loop that takes this much longer than on a quiet machine, by the clock, has waited for its processor."""
STORES: Final = ("kafka", "opensearch")


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of memory and CPU by one process."""

    resident_mib: float
    proportional_mib: float
    """Memory in which pages that several processes share count by their share."""
    cpu_percent: float


def measure_footprint() -> Result:
    """Measure both forms, one after the other, with the stores of the demo."""
    figures = [measure_calibration("before")]
    for form, services in FORMS.items():
        folder = FOLDER / "footprint" / form
        folder.mkdir(parents=True, exist_ok=True)
        figures += _measure_form(form, services, folder)
        figures.append(measure_calibration(f"after {form}"))
    return Result(
        "footprint",
        "Memory and CPU of every process of the stack, the services separately and together. Goals: 150 MiB for the "
        "services together without the scheduler, 750 MiB with scheduler and stores, 6 % of a core at rest",
        f"examples/cluster.yaml (10 nodes), new pods that no node fits; {SECONDS} s for each rate",
        tuple(figures),
    )


def measure_calibration(moment: str) -> Figure:
    """Measure a loop of known work by the clock and by its CPU time: a busy machine makes it wait."""
    begun = time.monotonic()
    cpu_ms = measure_milliseconds(_sum_squares, 5)
    clock_ms = (time.monotonic() - begun) / 5 * 1_000
    is_busy = clock_ms > BUSY_RATIO * cpu_ms
    note = f"by the clock {clock_ms:.1f} ms" + (": the machine is busy, CPU figures are too high" if is_busy else "")
    return Figure(f"calibration loop {moment}", round(cpu_ms, 2), "CPU ms", note=note)


def _sum_squares() -> int:
    return sum(number * number for number in range(CALIBRATION))


def _measure_form(form: str, services: Sequence[str], folder: Path) -> list[Figure]:
    begun = time.monotonic()
    numbers = count()
    with stack(folder, scenarios.EXAMPLES / "cluster.yaml", services=services, **SETTINGS[form]) as running:
        figures = [Figure(f"{form}: stores, topics and services ready", round(time.monotonic() - begun, 1), "s")]
        pids = list_pids(running, services)
        time.sleep(SETTLING_SECONDS)
        for rate in RATES:
            usage = _measure_rate(running, pids, rate, numbers)
            figures += _to_figures(form, rate, usage)
    return figures


def list_pids(running: Stack, services: Sequence[str]) -> dict[str, int]:
    """List the process of each service and store."""
    backends = running.backends
    stores = {"kafka": backends.kafka[0].pid, "opensearch": backends.opensearch.pid}
    return {service: running.processes.get_pid(service) for service in services} | stores


def _measure_rate(running: Stack, pids: Mapping[str, int], rate: int, numbers: "count[int]") -> dict[str, Usage]:
    before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
    begun = time.monotonic()
    _send(running, rate, begun, numbers)
    seconds = time.monotonic() - begun
    return {
        name: Usage(
            read_resident_mib(pid),
            read_proportional_mib(pid),
            (read_cpu_seconds(pid) - before[name]) / seconds * 100,
        )
        for name, pid in pids.items()
    }


def _send(running: Stack, rate: int, begun: float, numbers: "count[int]") -> None:
    """Send ``rate`` attempts a second about new pods that no node fits, for the time of a measurement."""
    for due in range(rate * SECONDS):
        time.sleep(max(begun + due / rate - time.monotonic(), 0))
        try_pod(running, next(numbers))
    time.sleep(max(begun + SECONDS - time.monotonic(), 0))


def try_pod(running: Stack, number: int) -> None:
    """Try the pod of that number, which no node of the demo's cluster fits."""
    pod = read_pod(scenarios.EXAMPLES / "pods" / "2-gpu-pod-default.yaml")
    pod["metadata"] |= {"name": f"pod-{number}", "uid": f"00000000-0000-0000-0000-{number:012}"}
    running.kube_scheduler.filter(pod, scenarios.ALL_NODES)


def read_proportional_mib(pid: int) -> float:
    """Read the memory of a process, with shared pages counted by its share of them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _to_figures(form: str, rate: int, usage: Mapping[str, Usage]) -> list[Figure]:
    situation = f"{form}, {f'{rate} attempts/s' if rate else 'at rest'}"
    figures = [_to_figure(f"{situation}: {name}", part) for name, part in usage.items()]
    parts = [part for name, part in usage.items() if name not in (*STORES, "scheduler")]
    sums = {"services without the scheduler": parts, "everything": list(usage.values())}
    return figures + [_to_figure(f"{situation}: {name}", _sum_up(summed)) for name, summed in sums.items()]


def _sum_up(parts: Sequence[Usage]) -> Usage:
    return Usage(
        sum(part.resident_mib for part in parts),
        sum(part.proportional_mib for part in parts),
        sum(part.cpu_percent for part in parts),
    )


def _to_figure(path: str, usage: Usage) -> Figure:
    note = f"PSS {usage.proportional_mib:.0f} MiB, CPU {usage.cpu_percent:.1f} % of a core"
    return Figure(path, round(usage.resident_mib), "MiB RSS", note=note)
