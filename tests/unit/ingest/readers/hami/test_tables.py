"""``X/Y Reason`` of a node in HAMi's log becomes counts; a reason of another form is kept word for word."""

import pytest

from ingest.readers.hami.attempt import NodeLine
from ingest.readers.hami.tables import parse_refusal
from schemas.events import REFUSED


def test_counts_of_one_total_are_counted() -> None:
    refusal = parse_refusal(NodeLine(REFUSED, reason="2/8 CardNotHealth, 1/8 NumaNotFit"))
    assert (refusal.counts, refusal.devices, refusal.bare) == ({"CardNotHealth": 2, "NumaNotFit": 1}, 8, "")


@pytest.mark.parametrize(
    "reason",
    [
        "0/-1 NumaNotFit",
        "-1/2 NumaNotFit",
        "1/2 NumaNotFit, 1/3 CardNotHealth",
        "1/99999999999999999999 NumaNotFit",
        "/",
    ],
)
def test_a_reason_that_can_not_be_counts_is_kept_as_it_is(reason: str) -> None:
    refusal = parse_refusal(NodeLine(REFUSED, reason=reason))
    assert (refusal.counts, refusal.bare) == ({}, reason)
