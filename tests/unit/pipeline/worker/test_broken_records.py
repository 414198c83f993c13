"""Whatever a record says, it is folded or set aside with a reason, and the attempts beside it are told."""

from collections import Counter

import pytest

from tests.fuzz import records

pytestmark = pytest.mark.usefixtures("quiet_log")


def test_twenty_thousand_broken_records_crash_nothing_and_stop_nobody() -> None:
    seen = Counter(records.outcomes(20_000, seed=20261121))
    assert seen.total() == 20_000
    assert min(seen["dead letter"], seen["folded"]) > 1_000
