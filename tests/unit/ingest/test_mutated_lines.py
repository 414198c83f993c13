"""No input, however broken, stops a reader, fills its memory or takes long. `make fuzz` reads a million of each."""

from collections import Counter

import pytest

from tests.fuzz.__main__ import SUITES
from tests.fuzz.limits import BLOCK, LARGE_PIECES, Usage, guard
from tests.support.stress import count_examples

pytestmark = pytest.mark.usefixtures("quiet_log")

OFTEN = {
    "hami-log": ("event", "noise", "unknown"),
    "kai-log": ("event", "noise", "unknown"),
    "kube-scheduler-log": ("event", "noise", "unknown"),
    "volcano-log": ("event", "noise", "unknown"),
    "raw-logs": ("1 lines", "no record of a shipper"),
    "sniffer-log": ("event", "unknown"),
    "sniffer-requests": ("event", "unknown"),
    "kube-events": ("event", "unknown"),
    "index": ("taken", "rejected"),
    "placements-and-alerts": ("used", "rejected"),
    "snapshot": ("unfit", "fits", "pod rejected"),
    "claims": ("fits", "refused before the nodes", "claim rejected"),
    "pasted-objects": ("explained, simulated", "explained, pod rejected", "nothing explained, no pod"),
    "simulations": ("refused, not judged", "fits, not judged", "refused, gang counted"),
}
"""Outcomes that a suite without them would not be worth its time."""


def test_every_suite_but_that_of_the_worker_is_here() -> None:
    assert OFTEN.keys() == SUITES.keys() - {"records"}


@pytest.mark.stress
@pytest.mark.parametrize("name", OFTEN)
def test_m11_broken_input_stops_nothing_fills_nothing_and_takes_no_longer(name: str) -> None:
    block = LARGE_PIECES.get(name, BLOCK)
    count = count_examples(500) * block // BLOCK
    seen = Counter(guard(SUITES[name](count, 1), Usage(block=block)))
    assert seen.total() == count
    assert min(seen[outcome] for outcome in OFTEN[name]) > count / 50, seen
