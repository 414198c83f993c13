"""From Kafka to bulk bodies at three sizes: what reading, Faust, the fold and writing each take of a worker's CPU."""

import json
import subprocess
import sys

from bench import cluster
from bench.backends import FOLDER
from bench.bodies import InProcess
from bench.report import Figure, Result, against_first
from bench.worker import read, run_worker
from demo.stack import provisioned
from schemas.records import Record
from schemas.topics import DECISIONS

SIZES = {10: 1_500, 500: 120, 5_000: 30}
"""Attempts by nodes."""
UNIT = "verdicts per CPU second"


def bodies() -> Result:
    """Each size twice: every card has changed since the attempt before, and nothing has (as in a queue that stands)."""
    figures: list[Figure] = []
    for nodes, attempts in SIZES.items():
        for changing in (True, False):
            figures += _at(nodes, attempts, changing=changing)
    sizes = ", ".join(f"{attempts:,} of {nodes:,}" for nodes, attempts in SIZES.items())
    return Result(
        "bodies",
        "Device verdicts per CPU second of a worker, from Kafka to bulk bodies, against raw aiokafka that decodes and "
        "counts. Goal: 3 M from Kafka to bulk bodies at 5,000 nodes",
        f"attempts by nodes of {cluster.CARDS} devices, different pods, all refused: {sizes}",
        tuple(figures),
    )


def _at(nodes: int, attempts: int, *, changing: bool) -> tuple[Figure, ...]:
    verdicts = nodes * cluster.CARDS * attempts
    alone = InProcess()
    records: list[Record] = []
    for one in cluster.attempts(nodes, attempts, changing=changing):
        alone.attempt(one)
        records += one
    with provisioned(FOLDER / "bodies") as (backends, processes):
        whole, note = run_worker(processes, backends, records, attempts)
        servers = backends.bootstrap_servers
        raw = read("aiokafka", servers, DECISIONS.name, len(records))
        through_faust = made_bodies(servers, attempts)
    where = f"{nodes:,} nodes, {'every card changed' if changing else 'nothing changed'}"
    per_attempt = f"{through_faust / attempts * 1000:.3g} ms an attempt"
    figures = [
        Figure(f"{where}: raw aiokafka, decode and count", verdicts / raw, UNIT),
        Figure(f"{where}: records to bodies, one thread", verdicts / alone.spent.until_bodies(), UNIT, note=_ms(alone)),
        Figure(f"{where}: Kafka to bodies, Faust", verdicts / through_faust, UNIT, note=per_attempt),
        Figure(f"{where}: the worker, Kafka to index", verdicts / whole, UNIT, note=note),
    ]
    return against_first(figures, lambda first, this: this / first)


def _ms(alone: InProcess) -> str:
    return f"ms an attempt: {alone.spent}"


def made_bodies(servers: str, attempts: int) -> float:
    """CPU seconds of a process that takes all records from Kafka to bulk bodies."""
    command = [sys.executable, "-m", "bench.bodies", servers, str(attempts)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_seconds"])
