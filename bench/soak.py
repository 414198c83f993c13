"""``python -m bench.soak --minutes 20``: does the worker's memory stay flat at attempts of 5,000 nodes?

A worker on a real Kafka and OpenSearch is given an attempt of 5,000 nodes x 8 devices each second, every other one an
unchanged retry; before each first attempt every card changes, so that no record is known by its bytes. The worker's
resident size is read every two seconds. The slope is a straight line through all but the warm-up, and its error that of
the line through the means of twenty stretches, because neighbouring readings are not independent. Ends with 1 when the
worker took more than it may, or when its slope is beyond the limit by two errors.
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

import numpy as np
from aiokafka import AIOKafkaProducer

from bench import cluster
from bench.backends import FOLDER
from bench.cpu import cpu_seconds, resident_mib
from demo.processes import free_ports
from demo.stack import provisioned
from schemas.topics import DECISIONS

NODES = 5_000
PODS = 100
"""Taken in turns, so that each is seen again; every pod's second attempt in a row is an unchanged retry."""
MOST_MIB = 300_000_000 / 2**20
MOST_PERCENT_AN_HOUR = 1.0
SAMPLE_SECONDS = 2.0
STRETCHES = 20


@dataclass(frozen=True, slots=True)
class Slope:
    """Of resident size over time, in percent of its mean an hour."""

    percent_an_hour: float
    error: float
    mean_mib: float

    @property
    def is_flat(self) -> bool:
        """Is a slope within the limit not ruled out?"""
        return self.percent_an_hour - 2 * self.error <= MOST_PERCENT_AN_HOUR


@dataclass(frozen=True, slots=True)
class Soaked:
    minutes: float
    attempts: int
    cpu_ms_an_attempt: float
    peak_mib: float
    slope: Slope


def slope(seconds: list[float], mib: list[float]) -> Slope:
    """The line through the means of ``STRETCHES`` stretches of the readings, at least three readings in all."""
    count = min(STRETCHES, len(mib))
    x = np.array([part.mean() for part in np.array_split(np.array(seconds) / 3600, count)])
    y = np.array([part.mean() for part in np.array_split(np.array(mib), count)])
    rise = float(np.polyfit(x, y, 1)[0])
    rest = y - y.mean() - rise * (x - x.mean())
    error = float(np.sqrt((rest @ rest) / (count - 2) / ((x - x.mean()) @ (x - x.mean()))))
    mean = float(y.mean())
    return Slope(rise / mean * 100, error / mean * 100, mean)


def soak(minutes: float, attempts_a_second: float, say: Callable[[str], None]) -> Soaked:
    """Feed a worker for so long, and tell its resident size once a minute."""
    folder = FOLDER / "soak"
    shutil.rmtree(folder, ignore_errors=True)
    with provisioned(folder) as (backends, processes):
        port = free_ports("worker")["worker"]
        processes.start("worker", "pipeline", "worker", "--metrics-port", port)
        processes.wait_ready("worker", f"http://127.0.0.1:{port}/readyz")
        pid = processes.pid("worker")
        before = cpu_seconds(pid)
        seconds, mib, sent = asyncio.run(
            _feed(backends.bootstrap_servers, pid, minutes * 60, 1 / attempts_a_second, say)
        )
        processes.check()
        spent = cpu_seconds(pid) - before
    warm = len(mib) // 4
    return Soaked(minutes, sent, spent / sent * 1000, max(mib), slope(seconds[warm:], mib[warm:]))


async def _feed(
    servers: str, pid: int, seconds: float, pause: float, say: Callable[[str], None]
) -> tuple[list[float], list[float], int]:
    times: list[float] = []
    mib: list[float] = []
    reading = asyncio.create_task(_read_size(pid, times, mib, say))
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
    reading.cancel()
    return times, mib, sent


async def _read_size(pid: int, times: list[float], mib: list[float], say: Callable[[str], None]) -> None:
    began = time.monotonic()
    while True:
        times.append(time.monotonic() - began)
        mib.append(resident_mib(pid))
        if len(mib) % round(60 / SAMPLE_SECONDS) == 1:
            load = os.getloadavg()[0]
            say(f"{times[-1] / 60:5.1f} min: {mib[-1]:.0f} MiB resident, {max(mib):.0f} at most; load {load:.1f}")
        await asyncio.sleep(SAMPLE_SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--attempts-a-second", type=float, default=1)
    asked = parser.parse_args()
    done = soak(asked.minutes, asked.attempts_a_second, lambda line: print(line, flush=True))
    rise = done.slope
    print(
        f"{done.attempts} attempts of {NODES:,} nodes x {cluster.CARDS} devices in {done.minutes:g} minutes, "
        f"{done.cpu_ms_an_attempt:.1f} ms of CPU each: {done.peak_mib:.0f} MiB at most, "
        f"{rise.mean_mib:.0f} on average, "
        f"slope {rise.percent_an_hour:+.1f} ± {rise.error:.1f} % an hour"
    )
    print(json.dumps(asdict(done)))
    return 0 if done.peak_mib <= MOST_MIB and rise.is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
