"""What each override of Faust's internals saves: the worker with all of them, and without one at a time.

``python -m bench.overrides NAME …`` is the worker without the override ``NAME``; the arguments after it are those of
``python -m pipeline``.
"""

import sys
from itertools import chain

from bench import cluster
from bench.backends import FOLDER
from bench.report import Figure, Result, against_first
from bench.services import PATIENT, feed
from bench.worker import WARM_UP_ATTEMPTS
from demo.processes import free_ports
from demo.stack import provisioned

WITH_ALL, IN_LOOP, RUNS, SPACE = "with all", "consumer-in-the-loop", "runs-of-records", "wait-for-space"
SIZES = {10: 1_500, 500: 240, 5_000: 60}
"""Attempts by nodes; thirty others come before them and are not measured."""
ROUNDS = 3


def overrides() -> Result:
    """CPU of the worker alone, Kafka to Kafka; the best of some rounds, in turns."""
    figures: list[Figure] = []
    for nodes, attempts in SIZES.items():
        best = dict.fromkeys((WITH_ALL, IN_LOOP, RUNS, SPACE), float("inf"))
        with provisioned(FOLDER / "overrides", **PATIENT) as (backends, processes):
            warm_up = list(chain(*cluster.warm_up(nodes, WARM_UP_ATTEMPTS)))
            records = list(chain(*cluster.attempts(nodes, attempts, changing=0.01)))
            for _, name in ((turn, name) for turn in range(ROUNDS) for name in best):
                port = free_ports("worker")["worker"]
                command = ("worker", "--instance-id", "worker", "--metrics-address", port)
                processes.start("worker", "bench.overrides", name, *command)
                processes.wait_ready("worker", f"http://127.0.0.1:{port}/readyz")
                pids = {"worker": processes.pid("worker")}
                feed(processes, backends.bootstrap_servers, pids, warm_up)
                spent = feed(processes, backends.bootstrap_servers, pids, records)["worker"]
                best[name] = min(best[name], spent / attempts * 1000)
                processes.stop("worker")
        figures += against_first(
            [
                Figure(f"{nodes:,} nodes, {'' if name == WITH_ALL else 'without '}{name}", spent, "CPU ms an attempt")
                for name, spent in best.items()
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


def _undo(name: str) -> None:
    """Let the worker of this process be without the override."""
    from pipeline.worker import faust_app, faust_consumer

    if name == IN_LOOP:
        del faust_consumer.RunConsumer._new_consumer_thread
    elif name == RUNS:
        # A run of one record is a message for each record, as Faust has it.
        faust_app._RUN_RECORDS = 1  # type: ignore[misc]
    elif name == SPACE:
        del faust_consumer.RunConsumer._wait_next_records
    elif name != WITH_ALL:
        sys.exit(f"no override is called {name}")


if __name__ == "__main__":
    _undo(sys.argv.pop(1))
    from pipeline.__main__ import app

    app()
