"""The faults, by name. Each happens while pods keep coming, and is over when its function returns.

A fault finds one worker, called ``worker``, and one index writer, called ``index``; it leaves both running, and
perhaps more.
"""

import random
import time
from collections.abc import Callable
from typing import Final

from schemas.codec.records import EncodedRecord
from tests.chaos.exhaustion import full_spool, indices_lost, no_descriptors, some_pods, unpacks_to_much
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
            some_pods(load, chance)
            ground.start_worker("second")
        if not ground.ended("worker"):
            raise AssertionError(f"the worker did not come to {point}")
        ground.start_worker()
        ground.wait_ready("worker")
        some_pods(load, chance)
        if point == "rebalance":
            ground.processes.stop("second")

    return kill


def _kill_index_at(point: str) -> Fault:
    def kill(ground: Ground, load: Load, chance: random.Random) -> None:
        ground.processes.stop("index")
        ground.start_index(CHAOS_DIE=f"{point}:{chance.randint(1, 4)}")
        if not ground.ended("index"):
            raise AssertionError(f"the index writer did not come to {point}")
        ground.start_index()
        ground.wait_ready("index")
        some_pods(load, chance)

    return kill


def _kill_scheduler(ground: Ground, load: Load, chance: random.Random) -> None:
    for _ in range(3):
        some_pods(load, chance)
        time.sleep(chance.random() / 20)
        ground.processes.kill("scheduler")
        ground.start_scheduler()


def _kill_broker(ground: Ground, load: Load, chance: random.Random) -> None:
    some_pods(load, chance)
    broker = chance.choice(ground.servers.kafka)
    broker.kill()
    time.sleep(chance.uniform(0.5, 4))
    broker.start()
    some_pods(load, chance)


def _kill_opensearch(ground: Ground, load: Load, chance: random.Random) -> None:
    some_pods(load, chance)
    ground.servers.opensearch.kill()
    time.sleep(chance.uniform(0.5, 4))
    ground.servers.opensearch.start()
    some_pods(load, chance)


def _kill_worker_and_opensearch(ground: Ground, load: Load, chance: random.Random) -> None:
    """The machine of both fails; the worker is back first."""
    some_pods(load, chance)
    ground.servers.opensearch.kill()
    ground.processes.kill("worker")
    ground.start_worker()
    time.sleep(chance.uniform(0.5, 4))
    ground.servers.opensearch.start()
    ground.wait_ready("worker")
    some_pods(load, chance)


def _index_away(seconds: float) -> Fault:
    """OpenSearch is down: every pod is answered by the API meanwhile, and afterwards all of it is in the index."""

    def away(ground: Ground, load: Load, chance: random.Random) -> None:
        some_pods(load, chance)
        ground.servers.opensearch.kill()
        end = time.monotonic() + seconds
        while True:
            some_pods(load, chance)
            ground.wait_answered(load)
            if time.monotonic() > end:
                break
        ground.servers.opensearch.start()
        some_pods(load, chance)

    return away


def _one_broker_down(ground: Ground, load: Load, chance: random.Random) -> None:
    """All that was offered is visible while one of three brokers is away, to a new worker, index
    writer and scheduler too."""
    some_pods(load, chance)
    broker = chance.choice(ground.servers.kafka)
    broker.kill()
    some_pods(load, chance)
    ground.processes.kill("worker")
    ground.start_worker()
    ground.processes.kill("index")
    ground.start_index()
    ground.processes.kill("scheduler")
    ground.start_scheduler()
    ground.wait_ready("worker")
    some_pods(load, chance)
    ground.wait_visible(load.namespace, len(load.answers))
    broker.start()


def _read_only(ground: Ground, load: Load, chance: random.Random) -> None:
    """All indices are read-only, as OpenSearch makes them when its disk is nearly full."""
    some_pods(load, chance)
    with ground.read_only_indices():
        some_pods(load, chance)
        time.sleep(chance.uniform(1, 3))
    some_pods(load, chance)


def _disk_full(ground: Ground, load: Load, chance: random.Random) -> None:
    """OpenSearch itself finds its disk full, makes its indices read-only, and writable when space is free again."""
    some_pods(load, chance)
    with ground.full_disk():
        some_pods(load, chance)
    some_pods(load, chance)


def _stop(what: str, seconds: float) -> Fault:
    def stop(ground: Ground, load: Load, chance: random.Random) -> None:
        some_pods(load, chance)
        with ground.stopped(_pid(ground, what)):
            time.sleep(seconds)
        if what == "worker" and ground.processes.has_ended("worker"):
            ground.start_worker()
        ground.wait_ready("worker")
        ground.wait_ready("index")
        some_pods(load, chance)

    return stop


def _pid(ground: Ground, what: str) -> int:
    if what in ("worker", "index", "scheduler"):
        return ground.processes.pid(what)
    server = ground.servers.opensearch if what == "opensearch" else ground.servers.kafka[0]
    if server.process is None:
        raise AssertionError(f"{what} does not run")
    return server.process.pid


def _zombie(ground: Ground, load: Load, chance: random.Random) -> None:
    """A worker is stopped while another takes over its partitions; then it continues to write."""
    ground.start_worker("second")
    ground.wait_ready("second")
    some_pods(load, chance)
    with ground.stopped(ground.processes.pid("worker")):
        time.sleep(LONGER_THAN_A_SESSION)
    some_pods(load, chance)
    ground.processes.stop("second")


def _stale_bulk(ground: Ground, load: Load, chance: random.Random) -> None:
    """An index writer is stopped during a request, another takes over and writes later versions; then the request is
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
    some_pods(load, chance)
    ground.processes.stop("second-index")


def _scale_index(ground: Ground, load: Load, chance: random.Random) -> None:
    """From one index writer to three and back."""
    others = ["second-index", "third-index"]
    for name in others:
        ground.start_index(name)
        time.sleep(chance.uniform(0.2, 2))
    for name in others:
        ground.wait_ready(name)
    some_pods(load, chance)
    for name in others:
        (ground.processes.kill if chance.random() < 0.5 else ground.processes.stop)(name)
        time.sleep(chance.uniform(0.2, 2))
    some_pods(load, chance)


def _garbage(ground: Ground, load: Load, chance: random.Random) -> None:
    """Records that can't be decoded, between those of the pods."""
    for _ in range(5):
        load.wait_for(len(load.answers) + 3)
        record = EncodedRecord(
            f"default/{load.namespace}/garbage".encode(), chance.randbytes(200), [("ce_type", chance.randbytes(9))]
        )
        ground.send(record)
        load.garbage += 1
    some_pods(load, chance)


def _scale(ground: Ground, load: Load, chance: random.Random) -> None:
    """From one worker to four and back."""
    others = ["second", "third", "fourth"]
    for name in others:
        ground.start_worker(name)
        time.sleep(chance.uniform(0.2, 2))
    for name in others:
        ground.wait_ready(name)
    some_pods(load, chance)
    for name in chance.sample(others, 3):
        (ground.processes.kill if chance.random() < 0.5 else ground.processes.stop)(name)
        time.sleep(chance.uniform(0.2, 2))
    some_pods(load, chance)


def _clock_set(ground: Ground, load: Load, chance: random.Random) -> None:
    """The clock of the scheduler is an hour ahead, behind, and right again, while it runs."""
    ground.processes.stop("scheduler")
    clock = SettableClock(ground.folder)
    ground.start_scheduler(**clock.environment)
    # Of attempts that another process made no scheduler knows the time: see "What is not promised" in guarantees.md.
    load.retry_only_what_comes()
    some_pods(load, chance)
    for hours in (1, 0, -1, 1, 0):
        clock.set(hours * 3600)
        some_pods(load, chance)


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
    "indices read-only": _read_only,
    "disk of OpenSearch full": _disk_full,
    "a zombie comes back": _zombie,
    "a frozen request thaws": _stale_bulk,
    "garbage": _garbage,
    "no descriptors": no_descriptors,
    FULL_SPOOL: full_spool,
    "clock of the scheduler set": _clock_set,
    "records that unpack to much": unpacks_to_much,
    "indices deleted, not made, rebuilt": indices_lost,
    "1 to 4 to 1 workers": _scale,
    "scaled up, rolled out, rolled back": roll_out,
    "1 to 3 to 1 index writers": _scale_index,
    **{f"{name} stands still {s} s": _stop(what, s) for what, name in _STOPPABLE.items() for s in (5, 15, 90)},
    "OpenSearch is down, the API answers": _index_away(15),
    "one of three brokers is down": _one_broker_down,
}
THREE_BROKERS: Final = "one of three brokers is down"
"""Where there is only one, nothing is answered while it is down."""
