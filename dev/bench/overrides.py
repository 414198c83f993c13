"""Savings of each override of Faust's internals: the worker with all of them, and without one at a time.

Some save CPU, others time in which the worker waits: both are measured.

``python -m dev.bench.overrides NAME …`` is the worker without the override ``NAME``; the arguments after it are those
of ``python -m pipeline``.
"""

import sys
import time
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.cpu import read_cpu_seconds
from dev.bench.report import Figure, Result, add_ratios
from dev.bench.services import PATIENT, WORKERS, await_settled, feed, send_while_stopped
from dev.bench.worker import WARM_UP_ATTEMPTS
from dev.demo.processes import Processes, find_free_ports
from dev.demo.stack import provisioned
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS

WITH_ALL, IN_LOOP, RUNS, SPACE = "with all", "consumer-in-the-loop", "runs-of-records", "wait-for-space"
SIZES = {10: 4_000, 500: 1_000, 5_000: 200}
"""Attempts by nodes; thirty others come before them and are not measured."""
ROUNDS = 3


def measure_overrides() -> Result:
    """Measure CPU and time of only the worker, Kafka to Kafka; the best of some rounds, in turns."""
    figures: list[Figure] = []
    for nodes, attempts in SIZES.items():
        cpu_ms = dict.fromkeys((WITH_ALL, IN_LOOP, RUNS, SPACE), float("inf"))
        milliseconds = dict(cpu_ms)
        with provisioned(FOLDER / "overrides", **PATIENT) as (backends, processes):
            warm_up = list(chain(*cluster.iterate_warm_up(nodes, WARM_UP_ATTEMPTS)))
            for number, name in enumerate(name for _ in range(ROUNDS) for name in list(cpu_ms)):
                # New ones each time: a worker does less for an attempt that it has published before.
                records = list(
                    chain(*cluster.iterate_attempts(nodes, attempts, changing=0.01, first=number * attempts))
                )
                program = ("dev.bench.overrides", name)
                spent = run_changed_worker(processes, backends.bootstrap_servers, program, warm_up, records)
                milliseconds[name] = min(milliseconds[name], spent.seconds / attempts * 1000)
                cpu_ms[name] = min(cpu_ms[name], spent.cpu_seconds / attempts * 1000)
        for unit, values in (("CPU ms an attempt", cpu_ms), ("ms an attempt", milliseconds)):
            figures += add_ratios(
                [
                    Figure(f"{nodes:,} nodes, {'' if name == WITH_ALL else 'without '}{name}", value, unit)
                    for name, value in values.items()
                ],
                lambda first, this: this / first,
            )
    work = ", ".join(f"{attempts:,} attempts of {nodes:,} nodes" for nodes, attempts in SIZES.items())
    return Result(
        "overrides",
        "The worker, from decisions to what follows from them on the topics; ratio: to the worker with all overrides",
        f"the best of {ROUNDS} rounds, in turns: {work}",
        tuple(figures),
    )


class SpentByWorker(NamedTuple):
    cpu_seconds: float
    seconds: float


def run_changed_worker(
    processes: Processes,
    servers: str,
    program: tuple[str, ...],
    warm_up: Sequence[EncodedRecord],
    records: Sequence[EncodedRecord],
) -> SpentByWorker:
    """Run a worker that ``program`` changes, until it has published what follows from ``records``."""
    port = find_free_ports("worker")["worker"]
    processes.start("worker", *program, "worker", "--instance-id", "worker", "--metrics-address", port)
    processes.wait_ready("worker", f"http://127.0.0.1:{port}/readyz")
    pids = {"worker": processes.get_pid("worker")}
    feed(processes, servers, pids, warm_up)
    send_while_stopped(servers, pids, records)
    cpu_seconds, begun = read_cpu_seconds(pids["worker"]), time.monotonic()
    await_settled(processes, servers, WORKERS, (DECISIONS,))
    spent = SpentByWorker(read_cpu_seconds(pids["worker"]) - cpu_seconds, time.monotonic() - begun)
    processes.stop("worker")
    return spent


def _undo(name: str) -> None:
    """Let the worker of this process be without the override."""
    from pipeline.worker import faust_app

    if name == IN_LOOP:
        del faust_app.RunConsumer._new_consumer_thread
    elif name == RUNS:
        # A run of one record is a message for each record, as Faust has it.
        faust_app._RUN_RECORDS = 1  # type: ignore[misc]
    elif name == SPACE:
        del faust_app.RunConsumer._wait_next_records
    elif name != WITH_ALL:
        sys.exit(f"no override is called {name}")


if __name__ == "__main__":
    _undo(sys.argv.pop(1))
    from pipeline.__main__ import app

    app()
