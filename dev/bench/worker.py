"""The Faust worker compared with raw aiokafka and the same decoder; a record per device compared with columns."""

import json
import subprocess
import sys
from itertools import chain

from dev.bench import cluster
from dev.bench.backends import FOLDER, collector
from dev.bench.cluster import DEVICES_PER_NODE
from dev.bench.cpu import read_resident_mib
from dev.bench.report import Figure, Result, add_ratios
from dev.bench.services import PATIENT, feed, start_both
from dev.demo.processes import Processes
from dev.demo.stack import provisioned
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS

NODES = 5_000
VERDICTS = NODES * DEVICES_PER_NODE
READERS = ("aiokafka", "faust")
WARM_UP_ATTEMPTS = 30


def measure_worker(attempts: int = 120) -> Result:
    """Measure the CPU of worker and index writer (decode, fold, publish; documents, index) and of readers that only
    decode and count."""
    # Every device changes between two attempts.
    records = list(chain(*cluster.iterate_attempts(NODES, attempts, changing=True)))
    warm_up = len(records) // attempts * WARM_UP_ATTEMPTS
    with provisioned(FOLDER / "worker", **PATIENT) as (backends, processes):
        servers = backends.bootstrap_servers
        pipeline = run_pipeline(processes, servers, records, attempts, NODES)
        seconds = {client: measure_reader(client, servers, DECISIONS.name, len(records), warm_up) for client in READERS}
    with provisioned(FOLDER / "worker", SCHEDULERLOG_STORE_DEVICES="false", **PATIENT) as (backends, processes):
        lean = run_pipeline(processes, backends.bootstrap_servers, records, attempts, NODES)
    with provisioned(FOLDER / "worker", **PATIENT) as (backends, processes):
        same = list(chain(*cluster.iterate_attempts(NODES, attempts)))
        still = run_pipeline(processes, backends.bootstrap_servers, same, attempts, NODES)
    with (
        collector() as url,
        provisioned(FOLDER / "worker", SCHEDULERLOG_OTLP_ENDPOINT=url, **PATIENT) as provisioned_pair,
    ):
        traced = run_pipeline(provisioned_pair[1], provisioned_pair[0].bootstrap_servers, same, attempts, NODES)
    counted = attempts * VERDICTS
    unit = "verdicts per CPU second"
    figures = [
        Figure("raw aiokafka, decode and count", counted / seconds["aiokafka"], unit),
        Figure("Faust agent, decode and count", counted / seconds["faust"], unit),
        Figure("Kafka to index", counted / pipeline[0], unit, note=pipeline[1]),
        Figure("Kafka to index, without storing device rows", counted / lean[0], unit, note=lean[1]),
        Figure("Kafka to index, while no device changes", counted / still[0], unit, note=still[1]),
        Figure(
            "the same, with spans", counted / traced[0], unit, note=f"{traced[0] / still[0]:.2f} of it; {traced[1]}"
        ),
    ]
    return Result(
        "worker",
        "Worker and index writer together, from decisions to the index, against readers of the same records that "
        "decode and count, nothing else",
        f"{attempts} attempts of {NODES:,} nodes x {DEVICES_PER_NODE} devices, all refused: {len(records)} records",
        add_ratios(figures, lambda first, this: this / first),
    )


def run_pipeline(
    processes: Processes, servers: str, records: list[EncodedRecord], attempts: int, nodes: int
) -> tuple[float, str]:
    """Run the pipeline; return the CPU seconds of worker and index writer from the first record to the last document,
    and a note.

    Other attempts come before: what happens once (imports, connections, buffers that grow for the first thirty
    attempts) is not part of the cost of an attempt.
    """
    pids = start_both(processes)
    feed(processes, servers, pids, list(chain(*cluster.iterate_warm_up(nodes, WARM_UP_ATTEMPTS))))
    spent = feed(processes, servers, pids, records)
    parts = [
        f"{name} {seconds / attempts * 1000:.3g} ms, {read_resident_mib(pids[name]):.0f} MiB"
        for name, seconds in spent.items()
    ]
    for name in pids:
        processes.stop(name)
    return sum(spent.values()), f"an attempt: {'; '.join(parts)}"


def measure_reader(client: str, servers: str, topic: str, records: int, warm_up: int = 0) -> float:
    """Measure the CPU seconds of a process that counts the verdicts of ``records`` records, after ``warm_up``
    others."""
    command = [sys.executable, "-m", "dev.bench.consumers", client, servers, topic, str(records), str(warm_up)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_seconds"])
