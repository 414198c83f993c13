"""`schedulerlog all` under the faults of ``make chaos``: exact when killed, and a bug in a part is caught."""

from collections.abc import Iterator

import pytest

from tests.chaos.caught import CALM_SECONDS, build_fault, heal, is_caught
from tests.chaos.faults import FAULTS_OF_ONE_PROCESS
from tests.chaos.ground import Ground, OneProcessGround, ground
from tests.chaos.runs import run
from tests.support.reused_backends import reused_backends

PODS_PER_SECOND = 8
BUG = "lost conclusions"
"""A bug of the worker, which shows whatever else happens."""


@pytest.fixture(scope="module")
def single_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("chaos")
    with reused_backends.taken() as servers, ground(folder, servers, OneProcessGround) as prepared:
        yield prepared


@pytest.mark.parametrize("fault", ["killed at any moment", "killed as an index writer: bulk-in-flight"])
def test_every_record_is_visible_once_when_all_parts_die_together(single_process: Ground, fault: str) -> None:
    seed = 2001 + list(FAULTS_OF_ONE_PROCESS).index(fault)
    outcome = run(single_process, fault, seed, FAULTS_OF_ONE_PROCESS[fault], pods_per_second=PODS_PER_SECOND)
    assert outcome.answered >= 10
    assert outcome.verdict.is_exact, str(outcome.verdict)


def test_a_bug_in_one_part_is_caught(single_process: Ground) -> None:
    outcome = run(single_process, BUG, 2101, build_fault(BUG), CALM_SECONDS)
    heal(single_process, BUG)
    assert is_caught(BUG, outcome.verdict)
