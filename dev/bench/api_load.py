"""200 readers of the API: with OpenSearch, and with an OpenSearch that stands still."""

import asyncio
import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx

from dev.bench import cluster
from dev.bench.backends import FOLDER, send, start_bare
from dev.bench.backlog import post_all
from dev.bench.cpu import read_resident_mib
from dev.bench.in_process import summarize_attempt
from dev.bench.mixed_readers import Kind, Tally, read_mixed
from dev.bench.report import Figure, Result
from dev.demo.processes import find_free_ports
from dev.demo.reader import build_schedulerlog_path
from dev.demo.stack import provisioned
from dev.embedded.jvm import FLAGS_VARIABLE
from engine.summaries.merge import settle
from engine.summaries.messages import build_search_text
from pipeline.sinks.bulk import Document
from schemas.codec.chunking import split
from schemas.codec.records import encode, encode_value
from schemas.documents.attempts import build_attempt_document
from schemas.events import AttemptSummarized, PodRef
from schemas.ids import derive_attempt_id
from schemas.indices import ATTEMPTS
from schemas.topics import ATTEMPTS as ATTEMPTS_TOPIC

READERS: Final = 200
NODES: Final = 10
CACHED, STORED, TRIED = 800, 2_000, 50
"""Pods in memory, in the index alone, and with a history."""
TRIES, IN_EPISODE = 100, 5
DAYS: Final = 10
"""The daily indices that the pods are spread over."""
QUIET_SECONDS: Final = 10
AS_OPERATORS_RUN_IT: Final = "-XX:+UseG1GC"
"""Both compilers of the JVM, and OpenSearch's own collector; the tests' servers have what starts soonest."""
WARM_UP_SECONDS: Final = 45
"""Until the JVM has compiled what runs often."""
REVIEW: Final = {
    "cached": "100 / 307", "stored": "2,100 / 3,600", "search": "2,200 / 3,600", "history": "6,000 / 9,900",
}  # fmt: skip
REVIEW_STOPPED: Final = {"cached": "87 / 284"} | dict.fromkeys(("stored", "search", "history"), "10,500 / 20,000")
"""p50 / p99 in ms of the review of November 2026, on two cores, without knowing its data."""
GOALS: Final = {"cached": 150.0, "stored": 1000.0, "search": 1000.0, "history": 1000.0}
_SEARCHES: Final = (
    "status=failed",
    "since=3d",
    "reason=CardInsufficientMemory",
    "pod=tried-7",
    "q=available",
    "limit=20",
)


def measure_api_load(seconds: float = 60) -> Result:
    """Measure the load. Goals: no error for pods in memory, p99 in ms of ``GOALS``, memory flat."""
    os.environ.setdefault(FLAGS_VARIABLE, AS_OPERATORS_RUN_IT)
    with provisioned(FOLDER / "load") as (backends, processes):
        ports = find_free_ports("api", "bare")
        cached, documents = _build_attempts(datetime.now(UTC))
        post_all(backends.opensearch_url, documents)
        httpx.post(f"{backends.opensearch_url}/{ATTEMPTS.alias}-*/_refresh", timeout=60).raise_for_status()
        records = [encode(part) for attempt in cached for part in split(attempt)]
        send(backends.bootstrap_servers, ATTEMPTS_TOPIC.name, records)
        processes.start("api", "api", "serve", "--listen", ports["api"])
        url, pid = f"http://127.0.0.1:{ports['api']}", processes.get_pid("api")
        processes.wait_ready("api", f"{url}/readyz")
        body = httpx.get(f"{url}{build_schedulerlog_path('llm/cached-0')}", timeout=30).raise_for_status().content
        start_bare(processes, ports["bare"], body)
        kinds = list_kinds()
        asyncio.run(read_mixed(url, kinds, READERS, min(seconds, WARM_UP_SECONDS)))
        bare_url = f"http://127.0.0.1:{ports['bare']}"
        bare = asyncio.run(read_mixed(bare_url, {"bare": kinds["cached"]}, READERS, min(seconds, 10)))
        memory = {"before": read_resident_mib(pid)}
        answered = asyncio.run(read_mixed(url, kinds, READERS, seconds))
        memory["after"] = read_resident_mib(pid)
        time.sleep(QUIET_SECONDS)
        memory[f"after {QUIET_SECONDS} s without readers"] = read_resident_mib(pid)
        backends.opensearch.pause()
        try:
            away = {
                name: replace(kind, expected=(200,) if name == "cached" else (503,)) for name, kind in kinds.items()
            }
            refused = asyncio.run(read_mixed(url, away, READERS, seconds))
        finally:
            backends.opensearch.resume()
        memory["after OpenSearch stood still"] = read_resident_mib(pid)
    return Result(
        "load",
        "200 readers of the API, each with one request after the other, beside as many of a bare handler of the bytes "
        "of an answer from memory; then the same with OpenSearch stopped by SIGSTOP. Client, servers and API share the "
        "cores. Goals: no error for what memory holds, p99 of 150 ms from memory and of 1 s for the others",
        f"{seconds:g} s each; {len(cached):,} pods in memory, {STORED:,} in the index alone, {TRIED} with {TRIES} "
        f"attempts in {TRIES // IN_EPISODE} episodes, {NODES} nodes, {DAYS} daily indices; "
        f"load average {os.getloadavg()[0]:.1f} at the end",
        (
            _build_figure("a bare handler", bare["bare"], kinds["cached"], "", None),
            *(
                _build_figure(name, answered[name], kind, REVIEW.get(name, ""), GOALS.get(name))
                for name, kind in kinds.items()
            ),
            *(
                _build_figure(
                    f"{name}, OpenSearch stopped", refused[name], kind, REVIEW_STOPPED.get(name, ""), GOALS.get(name)
                )
                for name, kind in away.items()
            ),
            *(Figure(f"the API's memory, {when}", size, "MiB") for when, size in memory.items()),
        ),
    )


def list_kinds() -> Mapping[str, Kind]:
    """List the kinds of requests in the mixture of the review."""
    return {
        "cached": Kind(0.66, lambda chance: build_schedulerlog_path(f"llm/cached-{chance.randrange(CACHED)}")),
        "stored": Kind(0.20, lambda chance: build_schedulerlog_path(f"llm/stored-{chance.randrange(STORED)}")),
        "search": Kind(0.05, lambda chance: f"/api/v1/schedulerlogs?namespace=llm&{chance.choice(_SEARCHES)}"),
        "history": Kind(
            0.05, lambda chance: build_schedulerlog_path(f"llm/tried-{chance.randrange(TRIED)}") + "/history"
        ),
        "unknown": Kind(0.04, lambda chance: build_schedulerlog_path(f"llm/none-{chance.randrange(10**6)}"), (404,)),
    }


def _build_figure(name: str, tally: Tally, kind: Kind, review: str, goal: float | None) -> Figure:
    """Build the figure of the p99, whose ratio is its share of the goal."""
    errors = sum(count for status, count in tally.statuses.items() if status not in kind.expected)
    note = f"p50 {tally.compute_milliseconds(50):,.0f} ms; {len(tally.latencies):,} requests, {errors:,} errors"
    note += f"; the review: {review} ms" if review else ""
    p99 = tally.compute_milliseconds(99)
    return Figure(f"{name}, p99", p99, "ms", round(p99 / goal, 2) if goal else None, note)


def _build_attempts(now: datetime) -> tuple[list[AttemptSummarized], list[Document]]:
    """Build the attempts for the memory, and the documents of all attempts."""
    model = summarize_attempt(cluster.encode_attempt(cluster.build_columns(NODES), 0))
    chance = random.Random(READERS)
    cached = [build_attempt(model, f"cached-{number}", now - timedelta(seconds=number)) for number in range(CACHED)]
    stored = [
        build_attempt(model, f"stored-{number}", now - timedelta(days=number % DAYS, seconds=chance.randrange(3_600)))
        for number in range(STORED)
    ]
    tried = [attempt for number in range(TRIED) for attempt in _iterate_history(model, f"tried-{number}", now)]
    return cached, list(map(build_document, (*cached, *stored, *tried)))


def _iterate_history(model: AttemptSummarized, pod: str, now: datetime) -> Iterator[AttemptSummarized]:
    step = timedelta(days=DAYS) / TRIES
    for number in range(TRIES):
        first = build_attempt(model, pod, now - step * (number - number % IN_EPISODE))
        episode = {"episode": first.attempt_id, "episode_started_at": first.started_at}
        yield build_attempt(model, pod, now - step * number).model_copy(update=episode)


def build_attempt(model: AttemptSummarized, pod: str, started_at: datetime) -> AttemptSummarized:
    uid = f"uid-{pod}"
    name = derive_attempt_id(model.cluster, model.scheduler, uid, started_at)
    report = model.reports[0].model_copy(update={"attempt_id": name, "started_at": started_at, "ended_at": started_at})
    identity = {
        "attempt_id": name,
        "pod": PodRef(namespace="llm", name=pod, uid=uid),
        "reports": [report],
        "episode": name,
    }
    times = {"started_at": started_at, "ended_at": started_at, "episode_started_at": started_at}
    return settle(model.model_copy(update=identity | times))


def build_document(attempt: AttemptSummarized) -> Document:
    source = encode_value(build_attempt_document(attempt, build_search_text(attempt)))
    return Document(ATTEMPTS.name(attempt.started_at), attempt.attempt_id, source, attempt.version)
