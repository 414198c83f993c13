"""No line, however broken, stops a reader, and none fills its memory. `make fuzz` reads a million."""

from collections import Counter

import pytest

from tests.fuzz.log_lines import outcomes
from tests.support.stress import examples

LINES = examples(4_000)


@pytest.mark.stress
def test_mutated_lines_stop_nothing_and_fill_nothing() -> None:
    seen = Counter(outcomes(LINES, seed=1))
    assert sum(seen.values()) == LINES
    assert min(seen["event"], seen["noise"], seen["unknown"]) > LINES / 20
