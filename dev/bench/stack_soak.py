"""``python -m dev.bench.stack_soak --minutes 30``: does the memory of any process grow under a steady load?

Services and stores of the demo run as processes of their own, and ``PODS`` pods that no node fits are tried in turns,
as a scheduler tries them again. The resident size of each process is read once a second, and the line through it is
fitted as ``dev.bench.soak`` fits it.
"""

import argparse
import itertools
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from dev.bench.backends import FOLDER
from dev.bench.cpu import read_cpu_seconds, read_resident_mib
from dev.bench.footprint import list_pids, measure_calibration, try_pod
from dev.bench.soak import Slope, count_warm_up_seconds, fit_slope
from dev.demo import scenarios
from dev.demo.stack import OPTIONAL_SERVICES, SEPARATE_SERVICES, Stack, stack

PODS: Final = 1_000
SERVICES: Final = (*SEPARATE_SERVICES, *OPTIONAL_SERVICES)


@dataclass(slots=True)
class Readings:
    """Readings of one process's resident size."""

    seconds: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SoakedProcess:
    """Needs of one process during the steady load."""

    process: str
    minutes: float
    attempts: int
    cpu_percent: float
    """CPU time in percent of one core."""
    peak_mib: float
    resident: Slope

    @property
    def is_good(self) -> bool:
        """Tell whether its memory may be flat."""
        return self.resident.may_be_flat


def run_stack_soak(minutes: float, attempts_a_second: float, report: Callable[[str], None]) -> list[SoakedProcess]:
    """Try pods for ``minutes`` at a stack with every service, and report the sizes once a minute."""
    folder = FOLDER / "stack-soak"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with stack(folder, scenarios.EXAMPLES / "cluster.yaml", services=SERVICES) as running:
        pids = list_pids(running, SERVICES)
        before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
        readings = {name: Readings() for name in pids}
        attempts = _try_pods(running, minutes * 60, attempts_a_second, lambda: _read(pids, readings, report))
        running.processes.check()
        spent = {name: read_cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    warm_until = count_warm_up_seconds(minutes)
    return [
        SoakedProcess(
            name, minutes, attempts, spent[name] / minutes / 60 * 100, max(series.mib), _fit(series, warm_until)
        )
        for name, series in readings.items()
    ]


def _try_pods(running: Stack, seconds: float, rate: float, read: Callable[[], None]) -> int:
    began = time.monotonic()
    next_reading = began
    for attempt in itertools.count():
        due = began + attempt / rate
        # By the clock as well: on a busy machine attempts take longer than their share of the time.
        if max(due, time.monotonic()) >= began + seconds:
            return attempt
        time.sleep(max(due - time.monotonic(), 0))
        try_pod(running, attempt % PODS)
        if time.monotonic() >= next_reading:
            read()
            next_reading += 1
    raise AssertionError("itertools.count() has no end")


def _read(pids: Mapping[str, int], readings: Mapping[str, Readings], report: Callable[[str], None]) -> None:
    now = time.monotonic()
    for name, pid in pids.items():
        readings[name].seconds.append(now)
        readings[name].mib.append(read_resident_mib(pid))
    so_far = readings["worker"].seconds
    if len(so_far) > 1 and (now - so_far[0]) // 60 > (so_far[-2] - so_far[0]) // 60:
        sizes = ", ".join(f"{name} {series.mib[-1]:.0f}" for name, series in readings.items())
        report(f"{(now - so_far[0]) / 60:5.1f} min, MiB: {sizes}")


def _fit(readings: Readings, warm_up_seconds: float) -> Slope:
    began = readings.seconds[0]
    warm = [
        (second, mib)
        for second, mib in zip(readings.seconds, readings.mib, strict=True)
        if second - began > warm_up_seconds
    ]
    return fit_slope([second for second, _ in warm], [mib for _, mib in warm])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.bench.stack_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--attempts-a-second", type=float, default=5)
    options = parser.parse_args()
    before = measure_calibration("before")
    done = run_stack_soak(options.minutes, options.attempts_a_second, lambda line: print(line, flush=True))
    for calibration in (before, measure_calibration("after")):
        print(f"{calibration.path}: {calibration.value} {calibration.unit} ({calibration.note})")
    print(f"{done[0].attempts:,} attempts of {PODS:,} pods in {options.minutes:g} minutes")
    for run in done:
        size = f"{run.resident.mean:.0f} MiB on average, {run.peak_mib:.0f} at most"
        print(f"{run.process:>12}: {size}, {run.resident}; {run.cpu_percent:.1f} % of a core")
        print(json.dumps(asdict(run)))
    return 0 if all(run.is_good for run in done) else 1


if __name__ == "__main__":
    sys.exit(main())
