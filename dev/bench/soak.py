"""``python -m dev.bench.soak --minutes 30``: does the memory of worker and index writer grow with attempts on 5,000
nodes?

Both run on a real Kafka and OpenSearch; the worker gets an attempt on 5,000 nodes x 8 devices every second; every
second one is an unchanged retry, and before each first attempt every device changes, so that none is a retry. Their
caches last ten minutes or are full by then, so a third of the time, at most twelve minutes, is warm-up.

It takes three readings about once a second (``dev.bench.watched_worker``): resident size, the memory that malloc has
given out, and Python's small blocks. The slope of each is that of a straight line through the medians of twenty
stretches, and the error is that of this line, because successive readings are not independent. The exit status is 1 if
one of them used more memory than the limit, or if a slope exceeds its limit by two errors.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.cpu import read_cpu_seconds
from dev.demo.processes import find_free_ports
from dev.demo.stack import provisioned
from schemas.topics import DECISIONS

NODES = 5_000
PODS = 100
"""Used in turns, so that each comes again; the second of two attempts of a pod in a row is an unchanged retry."""
# 300 MB, in the unit of the readings.
MAX_MIB = 300_000_000 / 2**20
MAX_PERCENT_PER_HOUR = 1.0
STRETCHES = 20
WARM_UP_SHARE, MAX_WARM_UP_SECONDS = 1 / 3, 720.0
READINGS = ("resident", "malloc", "blocks")
PROCESSES = ("worker", "index")


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth of a reading, in percent of its mean per hour."""

    percent_an_hour: float
    error: float
    mean: float

    @property
    def may_be_flat(self) -> bool:
        """Tell whether the slope may be within the limit."""
        return self.percent_an_hour - 2 * self.error <= MAX_PERCENT_PER_HOUR

    @property
    def is_certainly_flat(self) -> bool:
        """Tell whether the slope is certainly within the limit."""
        return self.percent_an_hour + 2 * self.error <= MAX_PERCENT_PER_HOUR

    def __str__(self) -> str:
        verdict = "flat" if self.is_certainly_flat else "not certainly flat" if self.may_be_flat else "rises"
        return f"{self.percent_an_hour:+.2f} ± {self.error:.2f} % an hour: {verdict}"


@dataclass(frozen=True, slots=True)
class Soaked:
    """Needs of one process."""

    process: str
    minutes: float
    attempts: int
    cpu_ms_an_attempt: float
    peak_mib: float
    slopes: dict[str, Slope]

    @property
    def is_good(self) -> bool:
        return self.peak_mib <= MAX_MIB and all(slope.may_be_flat for slope in self.slopes.values())


def fit_slope(seconds: list[float], readings: list[float]) -> Slope:
    """Fit the line through the medians of ``STRETCHES`` stretches of the readings; needs at least three readings."""
    count = min(STRETCHES, len(readings))
    x = np.array([part.mean() for part in np.array_split(np.array(seconds) / 3600, count)])
    # Medians, because a single garbage collection or batch makes a spike that would tilt a fit of all readings.
    y = np.array([np.median(part) for part in np.array_split(np.array(readings), count)])
    rise = float(np.polyfit(x, y, 1)[0])
    residuals = y - y.mean() - rise * (x - x.mean())
    error = float(np.sqrt((residuals @ residuals) / (count - 2) / ((x - x.mean()) @ (x - x.mean()))))
    mean = float(y.mean())
    return Slope(rise / mean * 100, error / mean * 100, mean)


def run_soak(minutes: float, attempts_a_second: float, report: Callable[[str], None]) -> list[Soaked]:
    """Feed a worker, and through it an index writer, for ``minutes``; report their resident sizes once a minute."""
    folder = FOLDER / "soak"
    shutil.rmtree(folder, ignore_errors=True)
    readings = {name: folder / f"{name}.jsonl" for name in PROCESSES}
    with provisioned(folder) as (backends, processes):
        for name, port in find_free_ports(*PROCESSES).items():
            processes.start(name, "dev.bench.watched_worker", str(readings[name]), name, "--metrics-address", port)
            processes.wait_ready(name, f"http://127.0.0.1:{port}/readyz")
        before = {name: read_cpu_seconds(processes.get_pid(name)) for name in PROCESSES}
        began = time.monotonic()
        sent = asyncio.run(_feed(backends.bootstrap_servers, readings, minutes * 60, 1 / attempts_a_second, report))
        processes.check()
        spent = {name: read_cpu_seconds(processes.get_pid(name)) - before[name] for name in PROCESSES}
    warm_until = began + count_warm_up_seconds(minutes)
    return [
        _summarize((name, minutes, sent, spent[name] / sent * 1000), read_readings(readings[name]), warm_until)
        for name in PROCESSES
    ]


def count_warm_up_seconds(minutes: float) -> float:
    """Count the seconds of a run in which caches still fill."""
    return min(minutes * 60 * WARM_UP_SHARE, MAX_WARM_UP_SECONDS)


def read_readings(path: Path) -> list[list[float]]:
    """Read each reading: its time, then the values of ``READINGS``."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def _summarize(run: tuple[str, float, int, float], readings: list[list[float]], warm_until: float) -> Soaked:
    columns = [list(values) for values in zip(*(line for line in readings if line[0] > warm_until), strict=True)]
    slopes = {name: fit_slope(columns[0], column) for name, column in zip(READINGS, columns[1:], strict=True)}
    return Soaked(*run, max(line[1] for line in readings), slopes)


async def _feed(
    servers: str, readings: Mapping[str, Path], seconds: float, pause: float, report: Callable[[str], None]
) -> int:
    reporting = asyncio.create_task(_report(readings, report))
    columns = cluster.build_columns(NODES)
    began, sent = time.monotonic(), 0
    async with AIOKafkaProducer(
        bootstrap_servers=servers, compression_type="zstd", enable_idempotence=True, max_batch_size=900_000
    ) as producer:
        while time.monotonic() < began + seconds:
            # Changed before every even attempt only: the odd one is the unchanged retry of the same pod.
            columns.devices["used_memory"][1:] += 1 - sent % 2
            for record in cluster.encode_attempt(columns, sent // 2 % PODS):
                await producer.send(DECISIONS.name, record.value, key=record.key, headers=record.headers)
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * pause - time.monotonic()))
        await producer.flush()
    reporting.cancel()
    return sent


async def _report(readings: Mapping[str, Path], report: Callable[[str], None]) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(60)
        for name, path in readings.items():
            so_far = read_readings(path)
            _, resident, malloc, blocks = so_far[-1]
            peak, load = max(line[1] for line in so_far), os.getloadavg()[0]
            report(
                f"{(time.monotonic() - began) / 60:5.1f} min, {name}: {resident:.0f} MiB resident, {peak:.0f} at most; "
                f"{malloc:.1f} MiB of malloc's and {blocks:,.0f} small blocks in use; load {load:.1f}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--attempts-a-second", type=float, default=1)
    options = parser.parse_args()
    done = run_soak(options.minutes, options.attempts_a_second, lambda line: print(line, flush=True))
    for run in done:
        print(
            f"{run.process}: {run.attempts} attempts of {NODES:,} nodes x {DEVICES_PER_NODE} devices in "
            f"{run.minutes:g} minutes, {run.cpu_ms_an_attempt:.1f} ms of CPU each: {run.peak_mib:.0f} MiB at most"
        )
        for name, rise in run.slopes.items():
            print(f"{name:>8}: {rise.mean:,.1f} on average, {rise}")
        print(json.dumps(asdict(run)))
    return 0 if all(run.is_good for run in done) else 1


if __name__ == "__main__":
    sys.exit(main())
