"""``X/Y Reason`` of a node in HAMi's log becomes counts; a reason of another form is kept word for word."""

import pytest

from ingest.readers.hami.attempt import UNKNOWN, DeviceLine, NodeLine
from ingest.readers.hami.tables import add_rows_by_elimination, find_complete_rows, parse_refusal
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


QUOTA = "ResourceQuotaNotFit"
UUIDS = tuple(f"GPU-{number}" for number in range(4))


def a_line(verdict: str) -> DeviceLine:
    return DeviceLine(verdict, "n1", "")


def test_d11_devices_without_a_line_have_the_only_reason_that_is_left() -> None:
    """HAMi prints a quota's refusal without the device."""
    node = NodeLine(REFUSED, reason=f"1/4 CardNotHealth, 3/4 {QUOTA}", container=0)
    rows = {(0, "n1"): {"GPU-2": a_line("CardNotHealth")}}
    added = add_rows_by_elimination(rows, {"n1": node}, {"n1": UUIDS})
    assert {uuid: line.verdict for uuid, line in added[0, "n1"].items()} == {
        "GPU-2": "CardNotHealth", **dict.fromkeys(("GPU-0", "GPU-1", "GPU-3"), QUOTA)
    }  # fmt: skip
    assert find_complete_rows({"n1": node}, added) == {(0, "n1")}


@pytest.mark.parametrize(
    ("reason", "container", "uuids"),
    [
        (f"1/4 CardNotHealth, 2/4 {QUOTA}, 1/4 NumaNotFit", 0, UUIDS),
        (f"1/4 CardNotHealth, 3/4 {QUOTA}", 0, UUIDS[:3]),
        (f"1/4 CardNotHealth, 3/4 {QUOTA}", UNKNOWN, UUIDS),
    ],
)
def test_d11_nothing_is_added_where_more_than_one_answer_is_left(
    reason: str, container: int, uuids: tuple[str, ...]
) -> None:
    node = NodeLine(REFUSED, reason=reason, container=container)
    rows = {(container, "n1"): {"GPU-2": a_line("CardNotHealth")}}
    assert add_rows_by_elimination(rows, {"n1": node}, {"n1": uuids}) == rows
