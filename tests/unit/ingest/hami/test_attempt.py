"""What a node's ``X/Y Reason`` in HAMi's log becomes: counts where it is counts, its own words where it is not."""

import pytest

from ingest.hami.attempt import NodeLine
from ingest.hami.tables import refusal_of
from schemas.events import REFUSED


def test_counts_of_one_total_are_counted() -> None:
    refusal = refusal_of(NodeLine(REFUSED, reason="2/8 CardNotHealth, 1/8 NumaNotFit"))
    assert (refusal.counts, refusal.devices, refusal.bare) == ({"CardNotHealth": 2, "NumaNotFit": 1}, 8, "")


@pytest.mark.parametrize(
    "said",
    [
        "0/-1 NumaNotFit",
        "-1/2 NumaNotFit",
        "1/2 NumaNotFit, 1/3 CardNotHealth",
        "1/99999999999999999999 NumaNotFit",
        "/",
    ],
)
def test_what_can_not_be_a_count_is_told_as_it_is(said: str) -> None:
    refusal = refusal_of(NodeLine(REFUSED, reason=said))
    assert (refusal.counts, refusal.bare) == ({}, said)
