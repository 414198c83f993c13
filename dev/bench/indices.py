"""Searches and histories of thirty days over an index a day, an index a month, and one index of everything."""

import itertools
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx

from dev.bench import cluster
from dev.bench.api_load import build_attempt, build_document, list_kinds
from dev.bench.backends import FOLDER
from dev.bench.backlog import post_all
from dev.bench.cpu import read_cpu_seconds
from dev.bench.in_process import summarize_attempt
from dev.bench.report import Figure, Result, add_ratios
from dev.demo.processes import find_free_ports
from dev.demo.stack import provisioned
from pipeline.sinks.bulk import Document
from schemas.indices import ATTEMPTS

NODES: Final = 10
DAYS: Final = 30
ATTEMPTS_A_DAY: Final = 500
TRIED: Final = 50
"""Pods whose attempts lie over all days."""
REQUESTS: Final = 150
TURNS: Final = 2
LAYOUTS: Final[dict[str, Callable[[str], str]]] = {
    "one index": lambda _: f"{ATTEMPTS.alias}-2020.01.01",
    "an index a month": lambda day: ATTEMPTS.derive_month(day)[0],
    "an index a day": lambda day: day,
}
"""Index of a document by that of its day."""


def measure_indices() -> Result:
    """Measure the CPU that OpenSearch and the API take for a request, the least of some turns."""
    now = datetime.now(UTC)
    documents = list(_build_documents(now))
    least: dict[tuple[str, str], float] = {}
    with provisioned(FOLDER / "indices") as (backends, processes):
        port = find_free_ports("api")["api"]
        processes.start("api", "api", "serve", "--listen", port)
        processes.wait_ready("api", f"http://127.0.0.1:{port}/readyz")
        pids, url = (backends.opensearch.pid, processes.get_pid("api")), backends.opensearch_url
        for _, layout in itertools.product(range(TURNS), LAYOUTS):
            httpx.delete(f"{url}/{ATTEMPTS.alias}-*", timeout=60).raise_for_status()
            post_all(url, [replace(document, index=LAYOUTS[layout](document.index)) for document in documents])
            httpx.post(f"{url}/{ATTEMPTS.alias}-*/_forcemerge", params={"max_num_segments": 1}, timeout=120)
            for kind in ("search", "history"):
                spent = _measure_milliseconds(f"http://127.0.0.1:{port}", kind, pids)
                least[kind, layout] = min(spent, least.get((kind, layout), spent))
    figures: list[Figure] = []
    for kind in ("search", "history"):
        of_kind = [Figure(f"{kind}, {layout}", least[kind, layout], "ms of CPU") for layout in LAYOUTS]
        figures += add_ratios(of_kind, lambda first, this: this / first)
    return Result(
        "indices",
        "Requests about thirty days against those over one index of the same documents; CPU of OpenSearch and API. "
        "Goal: 1.3 for a month each",
        f"{len(documents):,} attempts on {NODES} nodes, one segment an index, {REQUESTS} requests one after the other, "
        f"least of {TURNS} turns; load average {os.getloadavg()[0]:.1f} at the end",
        tuple(figures),
    )


def _build_documents(now: datetime) -> Iterator[Document]:
    model = summarize_attempt(cluster.encode_attempt(cluster.build_columns(NODES), 0))
    step = timedelta(days=1) / ATTEMPTS_A_DAY
    for number in range(DAYS * ATTEMPTS_A_DAY):
        # The pods of which histories are asked for are tried once a day.
        tried, day = number % ATTEMPTS_A_DAY, number // ATTEMPTS_A_DAY
        name = f"tried-{tried}" if tried < TRIED else f"stored-{number}"
        yield build_document(build_attempt(model, name, now - timedelta(days=day) - step * tried))


def _measure_milliseconds(api: str, kind: str, pids: tuple[int, ...]) -> float:
    """Measure the mean CPU time of a request, in milliseconds."""
    request, chance = list_kinds()[kind], random.Random(kind)
    paths = [request.path(chance) for _ in range(REQUESTS)]
    with httpx.Client(base_url=api, timeout=60) as client:
        # The first ones pay for what is compiled or cached.
        for path in paths[: REQUESTS // 3]:
            client.get(path)
        before = sum(map(read_cpu_seconds, pids))
        for path in paths:
            assert client.get(path).status_code in request.expected, path
    return (sum(map(read_cpu_seconds, pids)) - before) / REQUESTS * 1000
