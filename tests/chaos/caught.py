"""Under which circumstances each bug has to show."""

import random
import time
from collections.abc import Callable
from typing import Final

from tests.chaos import bugs, node_states_bugs
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.ground import Ground
from tests.chaos.ledger import Verdict
from tests.chaos.load import Load
from tests.chaos.scheduler_bugs import BUGS as SCHEDULER_BUGS

CALM_SECONDS = 4
"""What is not visible by then counts as lost: a worker without a bug needs about one second."""


def _plain(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.processes.kill("worker")
    ground.start_worker(CHAOS_BUG=bug)
    ground.wait_ready("worker")
    load.wait_for(len(load.answers) + 25)


def _killed_with_the_index_standing_still(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    _plain(ground, load, chance, bug)
    server = ground.servers.opensearch
    if server.process is None:
        raise AssertionError("OpenSearch does not run")
    with ground.stopped(server.process.pid):
        load.wait_for(len(load.answers) + 20)
        time.sleep(1.5)  # what is acknowledged is committed twice a second
        ground.processes.kill("worker")
    ground.start_worker(CHAOS_BUG=bug)
    ground.wait_ready("worker")


def _with_garbage(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    _plain(ground, load, chance, bug)
    FAULTS["garbage"](ground, load, chance)


def _with_the_index_read_only(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    _plain(ground, load, chance, bug)
    FAULTS["indices read-only"](ground, load, chance)


def _with_a_frozen_request(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.default_environment["CHAOS_BUG"] = bug
    try:
        FAULTS["a frozen request thaws"](ground, load, chance)
    finally:
        del ground.default_environment["CHAOS_BUG"]


def _in_node_states(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.processes.stop("node-states")
    ground.start_node_states(CHAOS_BUG=bug)
    ground.wait_until_states_are_read()
    load.wait_for(len(load.answers) + 25)


def _in_the_scheduler(ground: Ground, load: Load, chance: random.Random, bug: str) -> None:
    ground.processes.kill("scheduler")
    ground.start_scheduler(CHAOS_BUG=bug)
    load.wait_for(len(load.answers) + 25)


_SHOWN_BY: Final[dict[str, Callable[[Ground, Load, random.Random, str], None]]] = {
    "acknowledge before the write": _killed_with_the_index_standing_still,
    "take": _killed_with_the_index_standing_still,
    "no external version": _with_a_frozen_request,
    "no dead letters": _with_garbage,
    "a failed request counts as written": _with_the_index_read_only,
    **dict.fromkeys(node_states_bugs.BUGS, _in_node_states),
    **dict.fromkeys(SCHEDULER_BUGS, _in_the_scheduler),
}
BUGS: Final = (*bugs.BUGS, *node_states_bugs.BUGS, *SCHEDULER_BUGS)
_SAYS: Final = {
    "a state published after its verdict": "was accepted after record",
    "a revision used twice": "has two contents",
    "a state lost": "document of state",
    "a state expired by retention": "near the day of record",
}
"""What the ledger has to say about a bug; about the others any difference will do."""


def is_caught(bug: str, verdict: Verdict) -> bool:
    """Whether the ledger found what the bug does."""
    return not verdict.is_exact and _SAYS.get(bug, "") in " ".join((*verdict.missing, *verdict.different))


def heal(ground: Ground, bug: str) -> None:
    """Have processes without a bug again, and no state that a bug damaged."""
    ground.processes.kill("worker")  # the next run starts one
    if bug in node_states_bugs.BUGS:
        ground.processes.stop("node-states")
        ground.start_node_states()
        ground.wait_ready("node-states")
    if bug not in bugs.BUGS:
        # A new run of the scheduler publishes every state that it refers to.
        ground.processes.kill("scheduler")
        ground.start_scheduler()


def fault_that_shows(bug: str) -> Fault:
    def fault(ground: Ground, load: Load, chance: random.Random) -> None:
        _SHOWN_BY.get(bug, _plain)(ground, load, chance, bug)

    return fault
