"""Whatever a record says, it is folded or set aside with a reason, and the attempts beside it are told."""

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fuzz import records


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_twenty_thousand_broken_records_crash_nothing_and_stop_nobody() -> None:
    seen = Counter(records.outcomes(20_000, seed=20261121))
    assert seen.total() == 20_000
    assert min(seen["dead letter"], seen["folded"]) > 1_000
