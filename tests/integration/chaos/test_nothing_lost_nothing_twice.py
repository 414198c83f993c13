"""Three minutes of what ``make chaos`` does for twenty: what the spool accepted becomes visible once, whatever dies.

And the other way round: with a bug in a process the same comparison finds it, so that it can't be blind.
"""

import os
from collections.abc import Iterator

import pytest

from tests.chaos.caught import BUGS, CALM_SECONDS, fault_that_shows, heal, is_caught
from tests.chaos.faults import FAULTS
from tests.chaos.ground import Ground, ground
from tests.chaos.runs import run
from tests.support.backends import chosen

SLICE = [
    *(name for name in FAULTS if name.startswith(("worker killed", "index writer killed"))),
    "scheduler killed",
    "broker killed",
    "OpenSearch killed",
    "indices read-only",
    "worker stands still 15 s",
    "index writer stands still 15 s",
    "OpenSearch is down, the API answers",
    "a frozen request thaws",
    "garbage",
]


TURNS = 3
"""A bug shows in nearly every run; where the chances of one hide it, those of the next do not."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    if chosen(os.environ) != "embedded":
        pytest.skip("kills servers, which it may do only to its own")
    with ground(tmp_path_factory.mktemp("chaos")) as made:
        yield made


@pytest.mark.parametrize("fault", SLICE)
def test_every_record_that_was_accepted_is_visible_exactly_once(place: Ground, fault: str) -> None:
    outcome = run(place, fault, seed=1 + SLICE.index(fault))
    assert outcome.answered >= 5
    assert outcome.partitions > 1
    assert outcome.verdict.is_exact, str(outcome.verdict)


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(place: Ground, bug: str) -> None:
    assert any(is_found(place, bug, seed=1001 + 100 * turn + BUGS.index(bug)) for turn in range(TURNS))


def is_found(place: Ground, bug: str, seed: int) -> bool:
    outcome = run(place, bug, seed, fault_that_shows(bug), CALM_SECONDS)
    heal(place, bug)
    return is_caught(bug, outcome.verdict)
