"""Speed of the index writer on a backlog, against raw ``_bulk`` of the same bodies."""

import http.client
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from urllib.parse import urlsplit

import httpx

from dev.bench import cluster
from dev.bench.backends import FOLDER, send
from dev.bench.cpu import apart, read_cpu_seconds
from dev.bench.in_process import BATCH_BYTES, BATCH_DOCUMENTS, InProcess
from dev.bench.report import Figure, Result, add_ratios
from dev.bench.services import WORKERS, await_settled, know_states, start_worker
from dev.demo.processes import Processes, find_free_ports
from dev.demo.stack import provisioned
from pipeline.sinks.bulk import Document, encode_body, split_batches
from schemas.codec.records import EncodedRecord
from schemas.topics import DECISIONS

SIZES = {10: 2_000, 500: 500, 5_000: 100}
"""Attempts by nodes."""
# As many requests as the index writer has under way at a time.
CONNECTIONS = 2
WARM_UP_SHARE = 0.2
"""Share of the work that is not measured: connecting, creating indices and compiling happen once only."""
INDEXED = re.compile(r'^schedulerlog_index_documents_total\{outcome="done"\} (\S+)$', re.MULTILINE)


def measure_indexing() -> Result:
    """Measure the index writer. Goal: it writes at least 0.8 of the documents a second that raw ``_bulk`` does."""
    figures: list[Figure] = []
    for nodes, attempts in SIZES.items():
        states, records, documents = _build_backlog(nodes, attempts)
        # On shared CPUs the process's own work is taken from the index; apart, only the index limits both.
        for is_apart in (True, False):
            figures += _compare_indexing(
                f"{nodes:,} nodes{', index apart' if is_apart else ''}", states, records, documents, is_apart
            )
    return Result(
        "indexing",
        "Documents a second: raw _bulk of prepared bodies over two connections, before and after the index writer; "
        "the index writer, from a backlog that a worker has published, after its first fifth. Index apart: OpenSearch "
        "has half of the CPUs for itself, raw _bulk, the index writer and Kafka have the rest; else all share all "
        "CPUs. Goal: 0.8",
        ", ".join(f"{attempts:,} attempts of {nodes:,} nodes" for nodes, attempts in SIZES.items()),
        tuple(figures),
    )


def _build_backlog(nodes: int, attempts: int) -> tuple[list[EncodedRecord], list[EncodedRecord], list[Document]]:
    """Build the states and records of attempts between which 1 % of the nodes change, and the attempts' documents."""
    states: list[EncodedRecord] = []
    attempts_records: list[list[EncodedRecord]] = []
    for changed, decisions in cluster.iterate_attempts_and_states(nodes, attempts, changing=0.01):
        states += changed
        attempts_records.append(decisions)
    documents = InProcess().run_attempts(attempts_records)
    return states, list(chain.from_iterable(attempts_records)), documents


def _compare_indexing(
    where: str,
    states: Sequence[EncodedRecord],
    records: Sequence[EncodedRecord],
    documents: Sequence[Document],
    is_apart: bool,
) -> tuple[Figure, ...]:
    with provisioned(FOLDER / "indexing") as (backends, processes):
        know_states(processes, backends.bootstrap_servers, states)
        publish_all(processes, backends.bootstrap_servers, records)
        jvm, brokers = backends.opensearch.pid, [broker.pid for broker in backends.kafka]
        with apart(jvm, brokers) if is_apart else nullcontext():
            # Other days are other indices: no run updates documents of another one, which costs more than creating
            # them.
            post_all(backends.opensearch_url, move_to_day(documents, "2001.01.01"))  # a JVM compiles what runs often
            before = post_all(backends.opensearch_url, move_to_day(documents, "2001.01.02"))
            # Raw ``_bulk`` runs before and after, because the speed of a shared machine drifts during a run.
            jvm_before = read_cpu_seconds(jvm)
            indexed, note = measure_rate(processes, "index", ["index"], INDEXED, len(documents))
            note += f", OpenSearch {read_cpu_seconds(jvm) - jvm_before:.1f} s"
            after = post_all(backends.opensearch_url, move_to_day(documents, "2001.01.03"))
    raw = 2 * len(documents) / (before + after)
    spread = f"{len(documents) / before:,.0f} before, {len(documents) / after:,.0f} after"
    figures = [
        Figure(f"{where}: raw _bulk", raw, "documents/s", note=spread),
        Figure(f"{where}: the index writer", indexed, "documents/s", note=note),
    ]
    return add_ratios(figures, lambda first, this: this / first)


def publish_all(processes: Processes, servers: str, records: Sequence[EncodedRecord]) -> None:
    """Let a worker publish what follows from the records; it has ended when this returns."""
    start_worker(processes)
    send(servers, DECISIONS.name, records)
    await_settled(processes, servers, WORKERS, (DECISIONS,))
    processes.stop("worker")


def move_to_day(documents: Sequence[Document], day: str) -> list[Document]:
    """Move the documents to the indices of another day."""
    return [replace(document, index=f"{document.index.rpartition('-')[0]}-{day}") for document in documents]


def post_all(index_url: str, documents: Sequence[Document]) -> float:
    """Post all documents, from prepared bodies in requests as large as the index writer's; return the seconds."""
    # Made before the clock starts: only sending and indexing are measured.
    bodies = [encode_body(batch) for batch in split_batches(documents, BATCH_DOCUMENTS, BATCH_BYTES)]
    shares = [bodies[start::CONNECTIONS] for start in range(CONNECTIONS)]
    began = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda share: _post(index_url, share), shares))
    return time.perf_counter() - began


def _post(index_url: str, bodies: Sequence[bytes]) -> None:
    connection = http.client.HTTPConnection(urlsplit(index_url).netloc, timeout=120)
    for payload in bodies:
        connection.request(
            "POST", "/_bulk?filter_path=errors", body=payload, headers={"content-type": "application/x-ndjson"}
        )
        answer = connection.getresponse().read()
        # A refused document costs less than a written one.
        if answer != b'{"errors":false}':
            raise RuntimeError(f"raw _bulk was answered {answer[:300]!r}")
    connection.close()


def measure_rate(
    processes: Processes, command: str, names: Sequence[str], counter: re.Pattern[str], total: int
) -> tuple[float, str]:
    """Measure the rate at which ``counter`` grows in the metrics of these processes, from the warm-up to ``total``;
    return it per second, with a note of their CPU time."""
    ports = find_free_ports(*names)
    for name in names:
        options = ["--instance-id", name] if command == "worker" else []
        processes.start(name, "pipeline", command, "--metrics-address", ports[name], *options)
    urls = [f"http://127.0.0.1:{port}/metrics" for port in ports.values()]
    first = done = 0
    began = 0.0
    while done < total:
        processes.check()
        done = sum(read_count(url, counter) for url in urls)
        # The rate starts at a reading, not at the exact share: polls are 50 ms apart.
        if done >= WARM_UP_SHARE * total and not first:
            first, began = done, time.perf_counter()
        time.sleep(0.05)
    seconds = time.perf_counter() - began
    spent = sum(read_cpu_seconds(processes.get_pid(name)) for name in names)
    for name in names:
        processes.stop(name)
    # Between two polls everything was done, and the rate would divide by nothing.
    if done == first:
        raise RuntimeError(f"all {total} were done at once: too few to measure a rate")
    return (done - first) / seconds, f"{seconds:.1f} s; CPU: {', '.join(names)} {spent:.1f} s"


def read_count(url: str, counter: re.Pattern[str]) -> int:
    try:
        return int(sum(map(float, counter.findall(httpx.get(url, timeout=5).text))))
    except httpx.TransportError:
        return 0  # not started yet
