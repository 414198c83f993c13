"""An unchanged retry compared with a first attempt: bytes in the index, and CPU of worker and index writer."""

import time
from collections.abc import Iterator, Mapping
from itertools import chain

import httpx

from bench import cluster
from bench.backends import FOLDER
from bench.report import Figure, Result
from bench.services import PATIENT, feed, start_both
from bench.worker import WARM_UP_ATTEMPTS
from demo.stack import provisioned
from schemas.codec.records import EncodedRecord

SIZES = {10: 500, 500: 60, 5_000: 20}
"""Pods by nodes."""
STATS_SECONDS = 11
"""OpenSearch updates the sizes of its files every ten."""
TIMES = 3
"""Retries of each pod."""
ROUNDS = 4


def retries() -> Result:
    """Goals: at most 1/50 of the bytes, half of the CPU."""
    figures: list[Figure] = []
    for nodes, pods in SIZES.items():
        figures += _at(nodes, pods)
    return Result(
        "retries",
        "Unchanged retries against the first attempts of the same pods: the index on disk (segments merged) and "
        "the CPU of worker and index writer. Goals: 0.02 of the bytes, 0.5 of the CPU",
        ", ".join(f"{pods} pods at {nodes:,} nodes" for nodes, pods in SIZES.items())
        + f", each retried {TIMES} times, in {ROUNDS} rounds; "
        "between pods every device changes, between the attempts of a pod nothing",
        tuple(figures),
    )


def _at(nodes: int, pods: int) -> Iterator[Figure]:
    """CPU over several rounds, because the speed of a machine varies; bytes from the first round."""
    first_cpu: dict[str, float] = {}
    again_cpu: dict[str, float] = {}
    first_bytes = again_bytes = 0.0
    tries = pods * TIMES
    with provisioned(FOLDER / "retries", **PATIENT) as (backends, processes):
        servers, pids = backends.bootstrap_servers, start_both(processes)
        warm_up = cluster.warm_up(nodes, WARM_UP_ATTEMPTS, changing=True)
        feed(processes, servers, pids, list(chain.from_iterable(warm_up)))
        before = _bytes(backends.opensearch_url)
        for number in range(ROUNDS):
            # All pods once, then each again: a retry follows its own attempt, with the others' in between.
            _add(first_cpu, feed(processes, servers, pids, _records(nodes, pods, number)))
            after_first = _bytes(backends.opensearch_url) if not number else 0
            again: list[EncodedRecord] = []
            for _ in range(TIMES):
                again += _records(nodes, pods, number)
            _add(again_cpu, feed(processes, servers, pids, again))
            if not number:
                first_bytes, again_bytes = after_first - before, _bytes(backends.opensearch_url) - after_first
    yield Figure(f"{nodes:,} nodes: first attempt", first_bytes / pods, "index bytes")
    yield _against(f"{nodes:,} nodes: unchanged retry", again_bytes / tries, first_bytes / pods, "index bytes")
    for name in pids:
        first, retry = (cpu[name] / ROUNDS * 1000 for cpu in (first_cpu, again_cpu))
        yield Figure(f"{nodes:,} nodes, {name}: first attempt", first / pods, "CPU ms")
        yield _against(f"{nodes:,} nodes, {name}: unchanged retry", retry / tries, first / pods, "CPU ms")


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for name, seconds in more.items():
        sums[name] = sums.get(name, 0.0) + seconds


def _against(path: str, value: float, first: float, unit: str) -> Figure:
    return Figure(path, value, unit, round(value / first, 4), f"1/{first / max(value, 0.001):,.1f}")


def _records(nodes: int, pods: int, round_number: int) -> list[EncodedRecord]:
    """The records of one round; every round has other pods and other states of the devices."""
    first = pods * round_number
    return list(chain.from_iterable(cluster.attempts(nodes, pods, changing=True, first=first, less=first)))


def _bytes(index_url: str) -> int:
    """Size on disk of all our indices after merging their segments."""
    # Unmerged segments hold deleted versions and their own overhead, which depends on when refreshes happened.
    merged = f"{index_url}/schedulerlog-*/_forcemerge?max_num_segments=1&flush=true"
    httpx.post(merged, timeout=300).raise_for_status()
    time.sleep(STATS_SECONDS)
    stats = httpx.get(f"{index_url}/schedulerlog-*/_stats/store", timeout=30).raise_for_status().json()
    return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])
