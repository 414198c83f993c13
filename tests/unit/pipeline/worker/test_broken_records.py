"""Any record is folded or dead-lettered with a cause, and the attempts beside it are written."""

from collections import Counter

import pytest

from tests.fuzz import records
from tests.support.stress import count_examples

pytestmark = pytest.mark.usefixtures("quiet_log")


@pytest.mark.stress
def test_broken_records_crash_nothing_and_stop_no_other_attempt() -> None:
    count = count_examples(1_500)
    seen = Counter(records.feed_records(count, seed=20261121))
    assert seen.total() == count
    assert min(seen["dead letter"], seen["folded"]) > count / 20
