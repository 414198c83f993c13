"""``python -m bench.soak --minutes 30``: does the worker's memory stay flat at attempts of 5,000 nodes?

A worker on a real Kafka and OpenSearch is given an attempt of 5,000 nodes x 8 devices each second, every other one an
unchanged retry; before each first attempt every card changes, so that no record is known by its bytes. What the worker
remembers it remembers for ten minutes at most, or in so many bytes that they are full by then: a third of the time,
twelve minutes at most, is warm-up.

Three readings about once a second (``bench.watched_worker``): resident size, what is in use of malloc's memory, and
Python's small blocks. The slope of each is a straight line through the medians of twenty stretches, and its error that
of this line, because neighbouring readings are not independent. Ends with 1 when the worker took more than it may, or
when a slope is beyond the limit by two errors.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer

from bench import cluster
from bench.backends import FOLDER
from bench.cpu import cpu_seconds
from demo.processes import free_ports
from demo.stack import provisioned
from schemas.topics import DECISIONS

NODES = 5_000
PODS = 100
"""Taken in turns, so that each is seen again; every pod's second attempt in a row is an unchanged retry."""
MOST_MIB = 300_000_000 / 2**20
MOST_PERCENT_AN_HOUR = 1.0
STRETCHES = 20
WARM_SHARE, MOST_WARM_SECONDS = 1 / 3, 720.0
READINGS = ("resident", "malloc", "blocks")


@dataclass(frozen=True, slots=True)
class Slope:
    """Of a reading over time, in percent of its mean an hour."""

    percent_an_hour: float
    error: float
    mean: float

    @property
    def is_flat(self) -> bool:
        """Is a slope within the limit not ruled out?"""
        return self.percent_an_hour - 2 * self.error <= MOST_PERCENT_AN_HOUR

    @property
    def is_shown(self) -> bool:
        """Is a slope beyond the limit ruled out?"""
        return self.percent_an_hour + 2 * self.error <= MOST_PERCENT_AN_HOUR


@dataclass(frozen=True, slots=True)
class Soaked:
    minutes: float
    attempts: int
    cpu_ms_an_attempt: float
    peak_mib: float
    slopes: dict[str, Slope]

    @property
    def is_good(self) -> bool:
        return self.peak_mib <= MOST_MIB and all(each.is_flat for each in self.slopes.values())


def slope(seconds: list[float], readings: list[float]) -> Slope:
    """The line through the medians of ``STRETCHES`` stretches of the readings, at least three readings in all."""
    count = min(STRETCHES, len(readings))
    x = np.array([part.mean() for part in np.array_split(np.array(seconds) / 3600, count)])
    y = np.array([np.median(part) for part in np.array_split(np.array(readings), count)])
    rise = float(np.polyfit(x, y, 1)[0])
    rest = y - y.mean() - rise * (x - x.mean())
    error = float(np.sqrt((rest @ rest) / (count - 2) / ((x - x.mean()) @ (x - x.mean()))))
    mean = float(y.mean())
    return Slope(rise / mean * 100, error / mean * 100, mean)


def soak(minutes: float, attempts_a_second: float, say: Callable[[str], None]) -> Soaked:
    """Feed a worker for so long, and tell its resident size once a minute."""
    folder = FOLDER / "soak"
    shutil.rmtree(folder, ignore_errors=True)
    readings = folder / "readings.jsonl"
    with provisioned(folder) as (backends, processes):
        port = free_ports("worker")["worker"]
        processes.start("worker", "bench.watched_worker", str(readings), "worker", "--metrics-port", port)
        processes.wait_ready("worker", f"http://127.0.0.1:{port}/readyz")
        before, began = cpu_seconds(processes.pid("worker")), time.monotonic()
        sent = asyncio.run(_feed(backends.bootstrap_servers, readings, minutes * 60, 1 / attempts_a_second, say))
        processes.check()
        spent = cpu_seconds(processes.pid("worker")) - before
    warm = min(minutes * 60 * WARM_SHARE, MOST_WARM_SECONDS)
    return _soaked(minutes, sent, spent / sent * 1000, read(readings), began + warm)


def read(path: Path) -> list[list[float]]:
    """Of each reading: when, and the numbers of ``READINGS``."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def _soaked(minutes: float, sent: int, cpu_ms: float, readings: list[list[float]], warm_until: float) -> Soaked:
    columns = [list(each) for each in zip(*(line for line in readings if line[0] > warm_until), strict=True)]
    slopes = {name: slope(columns[0], column) for name, column in zip(READINGS, columns[1:], strict=True)}
    return Soaked(minutes, sent, cpu_ms, max(line[1] for line in readings), slopes)


async def _feed(servers: str, readings: Path, seconds: float, pause: float, say: Callable[[str], None]) -> int:
    telling = asyncio.create_task(_tell(readings, say))
    whole = cluster.columns(NODES)
    began, sent = time.monotonic(), 0
    async with AIOKafkaProducer(
        bootstrap_servers=servers, compression_type="zstd", enable_idempotence=True, max_batch_size=900_000
    ) as producer:
        while time.monotonic() < began + seconds:
            whole.devices["used_memory"][1:] += 1 - sent % 2
            for record in cluster.attempt(whole, sent // 2 % PODS):
                await producer.send(DECISIONS.name, record.value, key=record.key, headers=record.headers)
            sent += 1
            await asyncio.sleep(max(0.0, began + sent * pause - time.monotonic()))
        await producer.flush()
    telling.cancel()
    return sent


async def _tell(readings: Path, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(60)
        known = read(readings)
        _, resident, malloc, blocks = known[-1]
        most, load = max(line[1] for line in known), os.getloadavg()[0]
        say(
            f"{(time.monotonic() - began) / 60:5.1f} min: {resident:.0f} MiB resident, {most:.0f} at most; "
            f"{malloc:.1f} MiB of malloc's and {blocks:,.0f} small blocks in use; load {load:.1f}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--attempts-a-second", type=float, default=1)
    asked = parser.parse_args()
    done = soak(asked.minutes, asked.attempts_a_second, lambda line: print(line, flush=True))
    print(
        f"{done.attempts} attempts of {NODES:,} nodes x {cluster.CARDS} devices in {done.minutes:g} minutes, "
        f"{done.cpu_ms_an_attempt:.1f} ms of CPU each: {done.peak_mib:.0f} MiB at most"
    )
    for name, rise in done.slopes.items():
        verdict = "flat" if rise.is_shown else "not shown to be flat" if rise.is_flat else "rises"
        said = f"{rise.mean:,.1f} on average, {rise.percent_an_hour:+.2f} ± {rise.error:.2f} % an hour"
        print(f"{name:>8}: {said}: {verdict}")
    print(json.dumps(asdict(done)))
    return 0 if done.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
