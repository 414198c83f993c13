"""From Kafka to bulk bodies at three sizes: the CPU time of worker and index writer, against that of a plain reader."""

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.in_process import InProcess
from dev.bench.report import Figure, Result, add_ratios
from dev.bench.services import PATIENT, feed, start_worker
from dev.bench.worker import WARM_UP_ATTEMPTS, measure_reader, run_pipeline
from dev.demo.processes import Processes
from dev.demo.stack import provisioned
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS

SIZES = {10: 1_500, 500: 240, 5_000: 60}
"""Attempts by nodes; thirty others come before them and are not measured."""
UNIT = "verdicts per CPU second"


def measure_bodies() -> Result:
    """Measure each size twice: between attempts one node in a hundred changes, as on a cluster in use, or every device
    does."""
    figures: list[Figure] = []
    for nodes, attempts in SIZES.items():
        for changing in (0.01, 1):
            figures += _measure_size(nodes, attempts, changing=changing)
    sizes = ", ".join(f"{attempts:,} of {nodes:,}" for nodes, attempts in SIZES.items())
    return Result(
        "bodies",
        "Device verdicts per CPU second of both processes, the worker (Kafka to Kafka) and the index writer (Kafka to "
        "bulk bodies), against raw aiokafka that decodes and counts. Goal: 12 M from Kafka to bulk bodies at 5,000 "
        "nodes, 4 M where every device changed",
        f"attempts by nodes of {cluster.DEVICES_PER_NODE} devices, different pods, all refused: {sizes}",
        tuple(figures),
    )


def _measure_size(nodes: int, attempts: int, *, changing: float) -> tuple[Figure, ...]:
    alone = InProcess()
    warm_up = list(cluster.iterate_warm_up(nodes, WARM_UP_ATTEMPTS, changing=changing))
    alone.run_attempts(warm_up)
    # Buffers grow and caches fill during the first attempts; in operation that happens once.
    alone.reset_times()
    counted = list(cluster.iterate_attempts(nodes, attempts, changing=changing))
    alone.run_attempts(counted)
    first, records = list(chain.from_iterable(warm_up)), list(chain.from_iterable(counted))
    with provisioned(FOLDER / "bodies", **PATIENT) as (backends, processes):
        pipeline_seconds, note = run_pipeline(processes, backends.bootstrap_servers, records, attempts, nodes)
    with provisioned(FOLDER / "bodies", **PATIENT) as (backends, processes):
        servers = backends.bootstrap_servers
        worker, index = measure_processes(processes, servers, first, records, attempts)
        raw = measure_reader("aiokafka", servers, DECISIONS.name, len(records), len(first))
    verdicts = nodes * cluster.DEVICES_PER_NODE * attempts
    where = f"{nodes:,} nodes, {'every device changed' if changing == 1 else '1 % of the nodes changed'}"
    in_ms = f"ms an attempt: worker {worker / attempts * 1000:.3g}, index writer {index / attempts * 1000:.3g}"
    figures = [
        Figure(f"{where}: raw aiokafka, decode and count", verdicts / raw, UNIT),
        Figure(
            f"{where}: records to bodies, one thread",
            verdicts / alone.spent.sum_seconds(),
            UNIT,
            note=_format_ms(alone),
        ),
        Figure(f"{where}: Kafka to topics, the worker", verdicts / worker, UNIT),
        Figure(f"{where}: Kafka to bodies, both processes", verdicts / (worker + index), UNIT, note=in_ms),
        Figure(f"{where}: Kafka to index, both processes", verdicts / pipeline_seconds, UNIT, note=note),
    ]
    return add_ratios(figures, lambda first, this: this / first)


def _format_ms(alone: InProcess) -> str:
    return f"ms an attempt: {alone.spent}"


def measure_processes(
    processes: Processes,
    servers: str,
    warm_up: Sequence[EncodedRecord],
    records: Sequence[EncodedRecord],
    attempts: int,
) -> tuple[float, float]:
    """Measure the CPU seconds of a worker that publishes the results of ``records``, and of a process that makes their
    bulk bodies, after a warm-up of both with other records."""
    command = [sys.executable, "-m", "dev.bench.bodies", servers, str(WARM_UP_ATTEMPTS), str(attempts)]
    pids = {"worker": start_worker(processes)}
    feed(processes, servers, pids, warm_up)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        lines = process.stdout or ()
        next(line for line in lines if line == "warm\n")
        spent = feed(processes, servers, pids, records)
        print("continue", file=process.stdin)
        return spent["worker"], float(json.loads(next(line for line in lines if line.startswith("{")))["cpu_seconds"])
