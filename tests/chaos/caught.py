"""Under which circumstances each bug has to show."""

import random
import time
from collections.abc import Callable
from typing import Final

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.ground import Ground
from tests.chaos.load import Load

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


_SHOWN_BY: Final[dict[str, Callable[[Ground, Load, random.Random, str], None]]] = {
    "acknowledge before the write": _killed_with_the_index_standing_still,
    "take": _killed_with_the_index_standing_still,
    "no external version": _with_a_frozen_request,
    "no dead letters": _with_garbage,
    "a failed request counts as written": _with_the_index_read_only,
}


def fault_that_shows(bug: str) -> Fault:
    def fault(ground: Ground, load: Load, chance: random.Random) -> None:
        _SHOWN_BY.get(bug, _plain)(ground, load, chance, bug)

    return fault
