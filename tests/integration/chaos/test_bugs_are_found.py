"""With a bug in a process the comparison of the chaos runs finds it, so that it can't be blind."""

import pytest

from tests.chaos.caught import BUGS, CALM_SECONDS, ONE_OF_EACH_PROCESS, build_fault, heal, is_caught
from tests.chaos.ground import Ground
from tests.chaos.runs import run
from tests.support.stress import IS_STRESS

TURNS = 3
"""A bug shows in nearly every run; where the chances of one hide it, those of the next do not."""


@pytest.mark.stress
@pytest.mark.parametrize("bug", BUGS if IS_STRESS else ONE_OF_EACH_PROCESS)
def test_a_bug_is_found(shared_ground: Ground, bug: str) -> None:
    assert any(is_found(shared_ground, bug, seed=1001 + 100 * turn + BUGS.index(bug)) for turn in range(TURNS))


def is_found(shared_ground: Ground, bug: str, seed: int) -> bool:
    outcome = run(shared_ground, bug, seed, build_fault(bug), CALM_SECONDS)
    heal(shared_ground, bug)
    return is_caught(bug, outcome.verdict)
