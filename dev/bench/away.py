"""OpenSearch is down while attempts come: what is known meanwhile, what memory that takes, and the catch-up."""

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import httpx
from aiokafka import AIOKafkaProducer

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.backlog import INDEXED, move_to_day, post_all, read_count
from dev.bench.cpu import read_resident_mib
from dev.bench.in_process import InProcess
from dev.bench.report import Figure, Result
from dev.bench.services import INDEX_WRITERS, WORKERS, await_settled, start_index, start_worker
from dev.bench.services import INDEXED as INDEXED_TOPICS
from dev.demo.processes import find_free_ports
from dev.demo.reader import build_schedulerlog_path
from dev.demo.stack import provisioned
from pipeline.sinks.bulk import Document
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS

NODES, A_SECOND = 100, 50
MINUTES: Final = float(os.environ.get("BENCH_AWAY_MINUTES", "15"))
RAW_ATTEMPTS = 5_000
SAMPLES = 200
"""Number of pods in the sample at the end, before the index is back."""


def measure_index_away() -> Result:
    """Measure an absence of the index. Goals: all pods known, memory flat, and 0.8 of raw ``_bulk`` in the catch-up."""
    attempts = int(MINUTES * 60 * A_SECOND)
    documents = InProcess().run_attempts(_iterate_attempts(min(attempts, RAW_ATTEMPTS)))
    with provisioned(FOLDER / "index-away") as (backends, processes):
        servers, url = backends.bootstrap_servers, backends.opensearch_url
        ports = find_free_ports("index", "api")
        pids = {"worker": start_worker(processes), "index": start_index(processes, port=ports["index"])}
        processes.start("api", "api", "serve", "--listen", ports["api"], SCHEDULERLOG_API_CACHED_PODS="1000000")
        processes.wait_ready("api", f"http://127.0.0.1:{ports['api']}/readyz")
        backends.opensearch.kill()
        memory = asyncio.run(_send(servers, _iterate_attempts(attempts), pids))
        await_settled(processes, servers, WORKERS, (DECISIONS,))
        known_pods = _count_known(f"http://127.0.0.1:{ports['api']}", attempts)
        backends.opensearch.start()
        began = time.perf_counter()
        await_settled(processes, servers, INDEX_WRITERS, INDEXED_TOPICS)
        seconds = time.perf_counter() - began
        written = read_count(f"http://127.0.0.1:{ports['index']}/metrics", INDEXED)
        processes.stop("index")
        # From a restart as well, and as many: a JVM that was just started has compiled nothing, and an index grows.
        backends.opensearch.kill()
        backends.opensearch.start()
        raw = written / post_all(url, _repeat(documents, written))
        warm = len(documents) / post_all(url, move_to_day(documents, "2001.01.02"))
    rate = written / seconds
    return Result(
        "index-away",
        "OpenSearch down: pods that the API knows meanwhile, memory in the first and in the last minute, and the "
        "catch-up from the restart of OpenSearch on against raw _bulk of as many such documents after another restart. "
        "Goals: all, flat, 0.8",
        f"{MINUTES:g} minutes of {A_SECOND} attempts a second of {NODES} nodes x {cluster.DEVICES_PER_NODE} devices: "
        f"{attempts:,} attempts; {len(documents):,} documents for raw _bulk",
        (
            Figure("pods known while it is down", known_pods, "of those asked for", round(known_pods / SAMPLES, 3)),
            *(
                Figure(
                    f"{name}: memory",
                    last,
                    "MiB",
                    round(last / first, 3),
                    f"{first:.0f} MiB in the first minute, {half:.0f} in that at half of the time",
                )
                for name, (first, half, last) in memory.items()
            ),
            Figure("raw _bulk", raw, "documents/s", note=f"{warm:,.0f} right after that, when the JVM has compiled it"),
            Figure("the catch-up", rate, "documents/s", round(rate / raw, 3), f"{written:,} in {seconds:.0f} s"),
        ),
    )


def _repeat(documents: Sequence[Document], count: int) -> list[Document]:
    """Repeat the documents of one day, with further ids, until there are ``count``."""
    rounds = range(-(-count // len(documents)))
    of_one_day = move_to_day(documents, "2001.01.01")
    return [replace(document, id=f"{document.id}-{number}") for number in rounds for document in of_one_day][:count]


def _iterate_attempts(count: int) -> Iterator[list[EncodedRecord]]:
    """Iterate over attempts between which one node changes. Created while they are sent: all of them would take a
    gigabyte."""
    return cluster.iterate_attempts(NODES, count, changing=1 / NODES)


async def _send(
    servers: str, attempts: Iterable[Sequence[EncodedRecord]], pids: dict[str, int]
) -> dict[str, tuple[float, ...]]:
    """Send at a steady rate; the largest resident size of each process (MiB) in the first minute, in that which begins
    at half of the time, and in the last."""
    sizes: dict[str, list[tuple[float, float]]] = {name: [] for name in pids}
    began = time.monotonic()
    how = {"compression_type": "zstd", "enable_idempotence": True}
    async with AIOKafkaProducer(bootstrap_servers=servers, **how) as producer:
        for number, records in enumerate(attempts):
            for record in records:
                await producer.send(DECISIONS.name, record.value, key=record.key, headers=record.headers)
            if number % A_SECOND == 0:
                for name, pid in pids.items():
                    sizes[name].append((time.monotonic() - began, read_resident_mib(pid)))
            await asyncio.sleep(max(0.0, began + number / A_SECOND - time.monotonic()))
        await producer.flush()
    end = time.monotonic() - began
    begins = (0, end / 2, end - 60)
    return {
        name: tuple(max(size for moment, size in readings if begin <= moment <= begin + 60) for begin in begins)
        for name, readings in sizes.items()
    }


def _count_known(api: str, attempts: int) -> int:
    """Count the pods of a sample that the API knows."""
    step = max(1, attempts // SAMPLES)
    with httpx.Client(base_url=api, timeout=30) as client:
        answers = [client.get(build_schedulerlog_path(f"llm/hopeless-{number * step}")) for number in range(SAMPLES)]
    return sum(answer.is_success for answer in answers)
