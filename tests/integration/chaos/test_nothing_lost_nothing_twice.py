"""Three minutes of what ``make chaos`` does for twenty: what the spool accepted becomes visible once, whatever dies."""

import pytest

from tests.chaos.faults import FAULTS
from tests.chaos.ground import Ground
from tests.chaos.runs import run

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


@pytest.mark.parametrize("fault", SLICE)
def test_every_record_that_was_accepted_is_visible_exactly_once(place: Ground, fault: str) -> None:
    outcome = run(place, fault, seed=1 + SLICE.index(fault))
    assert outcome.answered >= 5
    assert outcome.partitions > 1
    assert outcome.verdict.is_exact, str(outcome.verdict)
