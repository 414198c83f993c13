"""The faults, by name. Each happens while pods keep coming, and is over when its function returns.

A fault finds one worker, called ``worker``, and one index writer, called ``index``; it leaves both running, and
perhaps more.
"""

import random
import time
from collections.abc import Callable
from typing import Final

from schemas.codec.records import EncodedRecord
from tests.chaos.changed_topics import add_partitions, lose_clock_topic, truncate_logs
from tests.chaos.exhaustion import (
    exhaust_descriptors,
    fill_spool,
    lose_indices,
    send_records_that_unpack_to_much,
    wait_for_pods,
)
from tests.chaos.ground import Ground
from tests.chaos.load import Load
from tests.chaos.rollout import roll_out
from tests.chaos.worker_with_faults import INDEX_POINTS, WORKER_POINTS
from tests.support.harness.settable_clock import SettableClock

Fault = Callable[[Ground, Load, random.Random], None]
LONGER_THAN_A_SESSION: Final = 9
"""Seconds; ``PACE`` of the ground sets sessions of six."""


_WHEN: Final[dict[str, Callable[[random.Random], int]]] = {
    "decoding": lambda chance: chance.randint(1, 40),
    "records-in-flight": lambda chance: chance.randint(1, 20),
    "after-records": lambda chance: chance.randint(1, 20),
    "after-histories": lambda chance: chance.randint(1, 20),
    "after-acknowledgement": lambda chance: chance.randint(1, 40),
    "rebalance": lambda _: 2,  # the first is its own coming into the group
}
"""On which occasion a worker that reaches a point is killed there."""


def _kill_worker_at(point: str) -> Fault:
    def kill(ground: Ground, load: Load, chance: random.Random) -> None:
        ground.processes.stop("worker")
        ground.start_worker(CHAOS_DIE=f"{point}:{_WHEN[point](chance)}")
        if point == "rebalance":
            ground.wait_ready("worker")
            wait_for_pods(load, chance)
            ground.start_worker("second")
        if not ground.ends("worker"):
            raise AssertionError(f"the worker did not come to {point}")
        ground.start_worker()
        ground.wait_ready("worker")
        wait_for_pods(load, chance)
        if point == "rebalance":
            ground.processes.stop("second")

    return kill


def _kill_index_at(point: str, name: str = "index") -> Fault:
    def kill(ground: Ground, load: Load, chance: random.Random) -> None:
        ground.processes.stop(name)
        ground.start_index(CHAOS_DIE=f"{point}:{chance.randint(1, 4)}")
        if not ground.ends(name):
            raise AssertionError(f"the index writer did not come to {point}")
        ground.start_index()
        ground.wait_ready("index")
        wait_for_pods(load, chance)

    return kill


def _kill_process(ground: Ground, load: Load, chance: random.Random) -> None:
    """Kill the one process, also while it starts."""
    for _ in range(3):
        wait_for_pods(load, chance)
        time.sleep(chance.random() * 3)
        ground.processes.kill("worker")
        ground.start_worker()
    ground.wait_ready("worker")
    wait_for_pods(load, chance)


def _kill_scheduler(ground: Ground, load: Load, chance: random.Random) -> None:
    for _ in range(3):
        wait_for_pods(load, chance)
        time.sleep(chance.random() / 20)
        ground.processes.kill("scheduler")
        ground.start_scheduler()


def _kill_broker(ground: Ground, load: Load, chance: random.Random) -> None:
    wait_for_pods(load, chance)
    broker = chance.choice(ground.servers.kafka)
    broker.kill()
    time.sleep(chance.uniform(0.5, 4))
    broker.start()
    wait_for_pods(load, chance)


def _kill_opensearch(ground: Ground, load: Load, chance: random.Random) -> None:
    wait_for_pods(load, chance)
    ground.servers.opensearch.kill()
    time.sleep(chance.uniform(0.5, 4))
    ground.servers.opensearch.start()
    wait_for_pods(load, chance)


def _kill_worker_and_opensearch(ground: Ground, load: Load, chance: random.Random) -> None:
    """Let the machine of both fail; the worker is back first."""
    wait_for_pods(load, chance)
    ground.servers.opensearch.kill()
    ground.processes.kill("worker")
    ground.start_worker()
    time.sleep(chance.uniform(0.5, 4))
    ground.servers.opensearch.start()
    ground.wait_ready("worker")
    wait_for_pods(load, chance)


def _stop_index(seconds: float) -> Fault:
    """Stop OpenSearch: the API answers every pod meanwhile, and afterwards all of them are in the index."""

    def stop(ground: Ground, load: Load, chance: random.Random) -> None:
        wait_for_pods(load, chance)
        ground.servers.opensearch.kill()
        end = time.monotonic() + seconds
        while True:
            wait_for_pods(load, chance)
            ground.wait_answered(load)
            if time.monotonic() > end:
                break
        ground.servers.opensearch.start()
        wait_for_pods(load, chance)

    return stop


def _stop_one_broker(ground: Ground, load: Load, chance: random.Random) -> None:
    """Stop one of three brokers: all decisions are visible meanwhile, to a new worker, index
    writer and scheduler too."""
    wait_for_pods(load, chance)
    broker = chance.choice(ground.servers.kafka)
    broker.kill()
    wait_for_pods(load, chance)
    ground.processes.kill("worker")
    ground.start_worker()
    ground.processes.kill("index")
    ground.start_index()
    ground.processes.kill("scheduler")
    ground.start_scheduler()
    ground.wait_ready("worker")
    wait_for_pods(load, chance)
    ground.wait_visible(load.namespace, len(load.answers))
    broker.start()


def _make_read_only(ground: Ground, load: Load, chance: random.Random) -> None:
    """Make all indices read-only, as OpenSearch does when its disk is nearly full."""
    wait_for_pods(load, chance)
    with ground.read_only_indices():
        wait_for_pods(load, chance)
        time.sleep(chance.uniform(1, 3))
    wait_for_pods(load, chance)


def _fill_disk(ground: Ground, load: Load, chance: random.Random) -> None:
    """Fill OpenSearch's disk: it makes its indices read-only, and writable when space is free again."""
    wait_for_pods(load, chance)
    with ground.full_disk():
        wait_for_pods(load, chance)
    wait_for_pods(load, chance)


def _stop(what: str, seconds: float) -> Fault:
    def stop(ground: Ground, load: Load, chance: random.Random) -> None:
        wait_for_pods(load, chance)
        with ground.stopped(_get_pid(ground, what)):
            time.sleep(seconds)
        if what == "worker" and ground.processes.release_if_ended("worker"):
            ground.start_worker()
        ground.wait_ready("worker")
        ground.wait_ready("index")
        wait_for_pods(load, chance)

    return stop


def _get_pid(ground: Ground, what: str) -> int:
    if what in ("worker", "index", "scheduler"):
        return ground.processes.get_pid(what)
    server = ground.servers.opensearch if what == "opensearch" else ground.servers.kafka[0]
    if server.process is None:
        raise AssertionError(f"{what} does not run")
    return server.process.pid


def _continue_as_zombie(ground: Ground, load: Load, chance: random.Random) -> None:
    """Stop a worker while another takes over its partitions; then it continues to write."""
    ground.start_worker("second")
    ground.wait_ready("second")
    wait_for_pods(load, chance)
    with ground.stopped(ground.processes.get_pid("worker")):
        time.sleep(LONGER_THAN_A_SESSION)
    wait_for_pods(load, chance)
    ground.processes.stop("second")


def _send_stale_bulk(ground: Ground, load: Load, chance: random.Random) -> None:
    """Stop an index writer during a request, while another takes over and writes later versions; then the request is
    sent."""
    ground.start_index("second-index")
    ground.wait_ready("second-index")
    ground.processes.stop("index")
    ground.start_index(CHAOS_FREEZE=str(chance.randint(2, 12)))
    deadline = time.monotonic() + 60
    while not ground.is_frozen("index"):
        if time.monotonic() > deadline:
            raise AssertionError("the index writer did not come to its bulk request")
        time.sleep(0.05)
    time.sleep(LONGER_THAN_A_SESSION)  # its partitions are the second's now
    ground.thaw("index")
    wait_for_pods(load, chance)
    ground.processes.stop("second-index")


def _scale_index(ground: Ground, load: Load, chance: random.Random) -> None:
    """Scale from one index writer to three and back."""
    others = ["second-index", "third-index"]
    for name in others:
        ground.start_index(name)
        time.sleep(chance.uniform(0.2, 2))
    for name in others:
        ground.wait_ready(name)
    wait_for_pods(load, chance)
    for name in others:
        (ground.processes.kill if chance.random() < 0.5 else ground.processes.stop)(name)
        time.sleep(chance.uniform(0.2, 2))
    wait_for_pods(load, chance)


def _send_garbage(ground: Ground, load: Load, chance: random.Random) -> None:
    """Send records that can't be decoded, between those of the pods."""
    for _ in range(5):
        load.wait_for(len(load.answers) + 3)
        record = EncodedRecord(
            f"default/{load.namespace}/garbage".encode(), chance.randbytes(200), [("ce_type", chance.randbytes(9))]
        )
        ground.send(record)
        load.garbage += 1
    wait_for_pods(load, chance)


def _scale(ground: Ground, load: Load, chance: random.Random) -> None:
    """Scale from one worker to four and back."""
    others = ["second", "third", "fourth"]
    for name in others:
        ground.start_worker(name)
        time.sleep(chance.uniform(0.2, 2))
    for name in others:
        ground.wait_ready(name)
    wait_for_pods(load, chance)
    for name in chance.sample(others, 3):
        (ground.processes.kill if chance.random() < 0.5 else ground.processes.stop)(name)
        time.sleep(chance.uniform(0.2, 2))
    wait_for_pods(load, chance)


def _set_clock(ground: Ground, load: Load, chance: random.Random) -> None:
    """Set the scheduler's clock an hour ahead, back, and right again, while it runs."""
    ground.processes.stop("scheduler")
    clock = SettableClock(ground.folder)
    ground.start_scheduler(**clock.environment)
    # Of attempts that another process made no scheduler knows the time: see docs/guarantees-limits.md.
    load.retry_only_what_comes()
    wait_for_pods(load, chance)
    for hours in (1, 0, -1, 1, 0):
        clock.set(hours * 3600)
        wait_for_pods(load, chance)


def _set_clock_of(name: str) -> Fault:
    """Set the clock of a process of the pipeline by hours and days in both directions, while it runs."""

    def set_clock(ground: Ground, load: Load, chance: random.Random) -> None:
        start = {"worker": ground.start_worker, "index": ground.start_index}[name]
        ground.processes.stop(name)
        folder = ground.folder / f"clock-of-{name}-{chance.randrange(10**9)}"
        folder.mkdir()
        clock = SettableClock(folder)
        start(**clock.environment)
        ground.wait_ready(name)
        for hours in (-48, 0, 48, -1, 3, 0):
            clock.set(hours * 3600)
            wait_for_pods(load, chance)
        ground.processes.stop(name)
        start()
        ground.wait_ready(name)

    return set_clock


_STOPPABLE: Final = {
    "worker": "worker",
    "index": "index writer",
    "scheduler": "scheduler",
    "broker": "broker",
    "opensearch": "OpenSearch",
}
FULL_SPOOL: Final = "disk of the spool full"
"""Only where a small disk can be mounted."""
FAULTS: Final[dict[str, Fault]] = {
    **{f"worker killed: {point}": _kill_worker_at(point) for point in WORKER_POINTS},
    **{f"index writer killed: {point}": _kill_index_at(point) for point in INDEX_POINTS},
    "scheduler killed": _kill_scheduler,
    "broker killed": _kill_broker,
    "OpenSearch killed": _kill_opensearch,
    "worker and OpenSearch killed": _kill_worker_and_opensearch,
    "indices read-only": _make_read_only,
    "disk of OpenSearch full": _fill_disk,
    "a zombie comes back": _continue_as_zombie,
    "a frozen request thaws": _send_stale_bulk,
    "garbage": _send_garbage,
    "no descriptors": exhaust_descriptors,
    FULL_SPOOL: fill_spool,
    "clock of the scheduler set": _set_clock,
    "clock of the worker set": _set_clock_of("worker"),
    "clock of the index writer set": _set_clock_of("index"),
    "records that unpack to much": send_records_that_unpack_to_much,
    "indices deleted, not made, rebuilt": lose_indices,
    "1 to 4 to 1 workers": _scale,
    "scaled up, rolled out, rolled back": roll_out,
    "1 to 3 to 1 index writers": _scale_index,
    **{f"{name} stands still {s} s": _stop(what, s) for what, name in _STOPPABLE.items() for s in (5, 15, 90)},
    "OpenSearch is down, the API answers": _stop_index(15),
    "partitions added": add_partitions,
    "topic of the clock deleted and made again": lose_clock_topic,
    "one of three brokers is down": _stop_one_broker,
    "logs of one of three brokers truncated": truncate_logs,
}
THREE_BROKERS: Final = frozenset(name for name in FAULTS if "of three brokers" in name)
"""Faults that need three brokers: with only one, nothing is answered while it is down, and nobody else has its logs."""
_OF_ONE_PROCESS: Final = (
    *(f"worker killed: {point}" for point in WORKER_POINTS if point != "rebalance"),
    "scheduler killed", "broker killed", "OpenSearch killed", "worker and OpenSearch killed", "indices read-only",
    "disk of OpenSearch full", "garbage", "clock of the worker set", "records that unpack to much",
    *(f"{_STOPPABLE[what]} stands still {s} s" for what in ("worker", "broker", "opensearch") for s in (5, 15, 90)),
    "OpenSearch is down, the API answers", "topic of the clock deleted and made again",
)  # fmt: skip
FAULTS_OF_ONE_PROCESS: Final[dict[str, Fault]] = {
    "killed at any moment": _kill_process,
    **{f"killed as an index writer: {point}": _kill_index_at(point, "worker") for point in INDEX_POINTS},
    **{name: FAULTS[name] for name in _OF_ONE_PROCESS},
}
"""Faults where worker, index writer and API are one process, ``schedulerlog all``."""
