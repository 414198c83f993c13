"""Three minutes of what ``make chaos`` does for twenty: what the spool accepted becomes visible once, whatever dies."""

import random

import pytest

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.ground import Ground
from tests.chaos.load import Load
from tests.chaos.runs import run

SLICE = {
    "worker killed": [name for name in FAULTS if name.startswith("worker killed")],
    "index writer killed": [name for name in FAULTS if name.startswith("index writer killed")],
    "servers killed": ["scheduler killed", "broker killed", "OpenSearch killed"],
    "what stands still, and garbage": [
        "worker stands still 15 s",
        "garbage",
        "index writer stands still 15 s",
        "a frozen request thaws",
    ],
    "workers of a StatefulSet": ["scaled up, rolled out, rolled back"],
    "index away": ["indices read-only", "OpenSearch is down, the API answers"],
}
"""Faults that come one after the other in one run: each run has a comparison of everything at its end."""

PODS_PER_SECOND = 8
"""Few, because the faults of a run take a minute or more, and everything of that time is compared."""


@pytest.mark.parametrize("kind", SLICE)
def test_every_record_that_was_accepted_is_visible_exactly_once(shared_ground: Ground, kind: str) -> None:
    faults = SLICE[kind]
    outcome = run(
        shared_ground,
        ", ".join(faults),
        seed=1 + list(SLICE).index(kind),
        fault=join_faults(faults),
        pods_per_second=PODS_PER_SECOND,
    )
    assert outcome.answered >= 5 * len(faults)
    assert outcome.partitions > 1
    assert outcome.verdict.is_exact, str(outcome.verdict)


def join_faults(names: list[str]) -> Fault:
    def apply_in_turn(ground: Ground, load: Load, chance: random.Random) -> None:
        for name in names:
            FAULTS[name](ground, load, chance)

    return apply_in_turn
