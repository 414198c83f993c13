"""Under which circumstances each bug has to show."""

import random
import time
from collections.abc import Callable
from typing import Final

from tests.chaos import bugs, index_bugs
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.ground import Ground
from tests.chaos.ledger import Verdict
from tests.chaos.load import Load
from tests.chaos.scheduler_bugs import BUGS as SCHEDULER_BUGS

CALM_SECONDS = 8
"""Limit after which invisible records count as lost: a pipeline without a bug needs two or three seconds."""

Circumstances = Callable[[Ground, Load, random.Random, str], None]


def _run_in_worker(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.processes.kill("worker")
    ground.start_worker(CHAOS_BUG=bug)
    ground.wait_ready("worker")
    load.wait_for(len(load.answers) + 25)


def _run_in_worker_killed_at(point: str) -> Circumstances:
    def kill(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
        _run_in_worker(ground, load, chance, bug)
        ground.processes.kill("worker")
        ground.start_worker(CHAOS_BUG=bug, CHAOS_DIE=f"{point}:{chance.randint(1, 5)}")
        if not ground.ends("worker"):
            raise AssertionError(f"the worker did not come to {point}")
        ground.start_worker(CHAOS_BUG=bug)
        ground.wait_ready("worker")

    return kill


def _run_in_worker_with_garbage(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    _run_in_worker(ground, load, chance, bug)
    FAULTS["garbage"](ground, load, chance)


def _run_in_index_writer(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.processes.stop("index")
    ground.start_index(CHAOS_BUG=bug)
    ground.wait_until_index_reads()
    load.wait_for(len(load.answers) + 25)


def _kill_with_index_standing_still(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    _run_in_index_writer(ground, load, chance, bug)
    server = ground.servers.opensearch
    if server.process is None:
        raise AssertionError("OpenSearch does not run")
    with ground.stopped(server.process.pid):
        load.wait_for(len(load.answers) + 20)
        time.sleep(1.5)  # what is acknowledged is committed
        ground.processes.kill("index")
    ground.start_index(CHAOS_BUG=bug)
    ground.wait_ready("index")


def _run_with_index_read_only(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    _run_in_index_writer(ground, load, chance, bug)
    FAULTS["indices read-only"](ground, load, chance)


def _run_with_frozen_request(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.default_environment["CHAOS_BUG"] = bug
    try:
        FAULTS["a frozen request thaws"](ground, load, chance)
    finally:
        del ground.default_environment["CHAOS_BUG"]


def _run_in_scheduler(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.processes.kill("scheduler")
    ground.start_scheduler(CHAOS_BUG=bug)
    load.wait_for(len(load.answers) + 25)


_killed_before_records: Final = _run_in_worker_killed_at("before-records")
_SHOWN_BY: Final[dict[str, Circumstances]] = {
    **dict.fromkeys(bugs.BUGS, _run_in_worker),
    **dict.fromkeys(index_bugs.BUGS, _run_in_index_writer),
    **dict.fromkeys(SCHEDULER_BUGS, _run_in_scheduler),
    "acknowledge before the write": _killed_before_records,
    "take": _killed_before_records,
    "a history written before its attempt": _run_in_worker_killed_at("after-histories"),
    "no dead letters": _run_in_worker_with_garbage,
    "the index acknowledged before it is written": _kill_with_index_standing_still,
    "no external version": _run_with_frozen_request,
    "a failed request counts as written": _run_with_index_read_only,
}
BUGS: Final = (*bugs.BUGS, *index_bugs.BUGS, *SCHEDULER_BUGS)
ONE_OF_EACH_PROCESS: Final = (
    "acknowledge before the write",
    "the index acknowledged before it is written",
    "a state published after its verdict",
)
"""Bugs of worker, index writer and scheduler that the suite tries: each takes half a minute."""
_SAYS: Final = {
    "no dead letters": "dead letters of",
    "dropped detail": "not forwarded",
    "a topic record published twice under different ids": "has 2 ids",
    "a history written before its attempt": "summary ",
    "the index acknowledged before it is written": "attempt ",
    "a state published after its verdict": "was accepted after record",
    "a revision used twice": "has two contents",
    "a state lost": "document of state",
    "a state expired by retention": "near the day of record",
}
"""Words of the ledger about a bug; for the others any difference will do."""


def is_caught(bug: str, verdict: Verdict) -> bool:
    """Tell whether the ledger found what the bug does."""
    return not verdict.is_exact and _SAYS.get(bug, "") in " ".join((*verdict.missing, *verdict.different))


def heal(ground: Ground, bug: str) -> None:
    """Restart processes without a bug, and replace the states that a bug damaged."""
    ground.processes.kill("worker")  # the next run starts one
    if bug in index_bugs.BUGS:
        ground.processes.stop("index")
        ground.start_index()
        ground.wait_ready("index")
    if bug in index_bugs.BUGS or bug in SCHEDULER_BUGS:
        # A new run of the scheduler publishes every state that it refers to.
        ground.processes.kill("scheduler")
        ground.start_scheduler()


def build_fault(bug: str) -> Fault:
    def show(ground: Ground, load: Load, chance: random.Random) -> None:
        _SHOWN_BY[bug](ground, load, chance, bug)

    return show
