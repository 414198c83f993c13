"""Cost of a first attempt, an unchanged retry and the state of a node: each process, Kafka's disk and the index.

``dev.bench.capacity`` reads the JSON line of this benchmark.
"""

import time
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import httpx

from dev.bench import cluster
from dev.bench.backends import FOLDER, send
from dev.bench.cpu import read_cpu_seconds
from dev.bench.report import Figure, Result
from dev.bench.services import INDEX_WRITERS, PATIENT, Pids, await_settled, feed, know_states, start_both
from dev.bench.worker import WARM_UP_ATTEMPTS
from dev.demo.processes import Processes
from dev.demo.stack import provisioned
from dev.embedded import Backends
from schemas.codec.records import EncodedRecord
from schemas.topics import NODE_STATES

SIZES = {10: 300, 500: 60, 5_000: 20}
"""Pods by nodes."""
STATS_SECONDS = 11
"""OpenSearch updates the sizes of its files every ten."""
TIMES = 3
"""Retries of each pod."""
ROUNDS = 3
CHANGING = 0.01
"""Share of the nodes that change between two pods."""
STATES = 5_000
"""Nodes, with a state each."""
OPENSEARCH = "OpenSearch"


def measure_retries() -> Result:
    """Measure retries. Goals: at most 1/50 of the bytes, half of the CPU."""
    figures: list[Figure] = []
    for nodes, pods in SIZES.items():
        figures += measure_size(nodes, pods)
    figures += _measure_states()
    return Result(
        "retries",
        "Unchanged retries against the first attempts of the same pods: the index on disk (segments merged), Kafka's "
        "logs of all topics, and the CPU of worker, index writer and OpenSearch. Goals: 0.02 of the bytes in the "
        "index, 0.5 of the CPU of worker and index writer",
        ", ".join(f"{pods} pods at {nodes:,} nodes" for nodes, pods in SIZES.items())
        + f", each retried {TIMES} times, in {ROUNDS} rounds; "
        "between pods 1 % of the nodes change, between the attempts of a pod nothing",
        tuple(figures),
    )


def measure_size(nodes: int, pods: int) -> Iterator[Figure]:
    """Measure CPU over several rounds, because the speed of a machine varies; bytes from the first round."""
    first_cpu: dict[str, float] = {}
    again_cpu: dict[str, float] = {}
    begun = after_first = after_all = _Stored(0, 0)
    tries = pods * TIMES
    with provisioned(FOLDER / "retries", **PATIENT) as (backends, processes):
        # Every round has the same ones.
        states = cluster.iterate_states(nodes, max(pods, WARM_UP_ATTEMPTS), CHANGING)
        know_states(processes, backends.bootstrap_servers, states)
        pids = start_both(processes)
        warm_up = cluster.iterate_warm_up(nodes, WARM_UP_ATTEMPTS, changing=CHANGING)
        feed(processes, backends.bootstrap_servers, pids, list(chain.from_iterable(warm_up)))
        begun = _measure_stored(backends)
        for number in range(ROUNDS):
            # All pods once, then each again: a retry follows its own attempt, with the others' in between.
            _add(first_cpu, _feed(backends, processes, pids, _list_records(nodes, pods, number)))
            after_first = after_first if number else _measure_stored(backends)
            again: list[EncodedRecord] = []
            for _ in range(TIMES):
                again += _list_records(nodes, pods, number)
            _add(again_cpu, _feed(backends, processes, pids, again))
            after_all = after_all if number else _measure_stored(backends)
    for field_name, unit in (("indices", "index bytes"), ("kafka", "Kafka bytes")):
        sizes = [getattr(stored, field_name) for stored in (begun, after_first, after_all)]
        first = (sizes[1] - sizes[0]) / pods
        yield Figure(f"{nodes:,} nodes: first attempt", first, unit)
        yield _compare(f"{nodes:,} nodes: unchanged retry", (sizes[2] - sizes[1]) / tries, first, unit)
    for name in first_cpu:
        first, retry = (cpu[name] / ROUNDS * 1000 for cpu in (first_cpu, again_cpu))
        yield Figure(f"{nodes:,} nodes, {name}: first attempt", first / pods, "CPU ms")
        yield _compare(f"{nodes:,} nodes, {name}: unchanged retry", retry / tries, first / pods, "CPU ms")


def _measure_states() -> Iterator[Figure]:
    """Measure the states of many nodes, which are written when they change, and once a day."""
    states = next(iter(cluster.iterate_attempts_and_states(STATES, 1)))[0]
    with provisioned(FOLDER / "retries", **PATIENT) as (backends, processes):
        pids = start_both(processes)
        begun = _measure_stored(backends)
        before = _read_cpu(backends, pids)
        send(backends.bootstrap_servers, NODE_STATES.name, states)
        await_settled(processes, backends.bootstrap_servers, INDEX_WRITERS, (NODE_STATES,))
        spent = {name: seconds - before[name] for name, seconds in _read_cpu(backends, pids).items()}
        written = _measure_stored(backends)
    yield Figure("the state of a node", (written.indices - begun.indices) / STATES, "index bytes")
    yield Figure("the state of a node", (written.kafka - begun.kafka) / STATES, "Kafka bytes")
    for name in ("index", OPENSEARCH):
        yield Figure(f"{name}: the state of a node", spent[name] / STATES * 1000, "CPU ms")


def _feed(backends: Backends, processes: Processes, pids: Pids, records: list[EncodedRecord]) -> dict[str, float]:
    """Feed the records; return the CPU seconds by process, with OpenSearch's, until their results are indexed."""
    before = read_cpu_seconds(backends.opensearch.pid)
    spent = feed(processes, backends.bootstrap_servers, pids, records)
    return spent | {OPENSEARCH: read_cpu_seconds(backends.opensearch.pid) - before}


def _read_cpu(backends: Backends, pids: Pids) -> dict[str, float]:
    return {name: read_cpu_seconds(pid) for name, pid in {**pids, OPENSEARCH: backends.opensearch.pid}.items()}


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for name, seconds in more.items():
        sums[name] = sums.get(name, 0.0) + seconds


def _compare(path: str, value: float, first: float, unit: str) -> Figure:
    return Figure(path, value, unit, round(value / first, 4), f"1/{first / max(value, 0.001):,.1f}")


def _list_records(nodes: int, pods: int, round_number: int) -> list[EncodedRecord]:
    """List the records of one round; every round has other pods."""
    return list(
        chain.from_iterable(cluster.iterate_attempts(nodes, pods, changing=CHANGING, first=pods * round_number))
    )


class _Stored(NamedTuple):
    """Bytes on disk."""

    indices: int
    kafka: int


def _measure_stored(backends: Backends) -> _Stored:
    """Measure all our indices after merging their segments, and the logs of all our topics."""
    url = backends.opensearch_url
    # Unmerged segments hold deleted versions and their own overhead, which depends on when refreshes happened.
    merged = f"{url}/schedulerlog-*/_forcemerge?max_num_segments=1&flush=true"
    httpx.post(merged, timeout=300).raise_for_status()
    time.sleep(STATS_SECONDS)
    stats = httpx.get(f"{url}/schedulerlog-*/_stats/store", timeout=30).raise_for_status().json()
    # Before the first document there is no index, and no size of it.
    index = int(stats["_all"]["primaries"].get("store", {}).get("size_in_bytes", 0))
    logs = backends.folder.glob("kafka*/data/schedulerlog.*/*.log")
    return _Stored(index, sum(log.stat().st_size for log in logs))
