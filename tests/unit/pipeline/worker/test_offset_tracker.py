from hypothesis import given
from hypothesis import strategies as st

from pipeline.worker.offset_tracker import OffsetTracker


@given(st.lists(st.integers(0, 1_000), unique=True, max_size=60).map(sorted), st.randoms(use_true_random=False))
def test_records_are_acknowledged_in_offset_order_in_whatever_order_they_complete(
    offsets: list[int], chance: object
) -> None:
    tracker: OffsetTracker[int] = OffsetTracker()
    for offset in offsets:
        assert tracker.track(offset, offset)
    finished, ready = set(), []
    order = list(offsets)
    chance.shuffle(order)  # type: ignore[attr-defined]
    for offset in order:
        finished.add(offset)
        ready += tracker.complete([offset])
        prefix = [tracked for position, tracked in enumerate(offsets) if set(offsets[: position + 1]) <= finished]
        assert ready == prefix
    assert len(tracker) == 0


def test_an_incomplete_record_holds_back_all_later_ones() -> None:
    tracker: OffsetTracker[str] = OffsetTracker()
    for offset in (5, 6, 9):
        tracker.track(offset, f"r{offset}")
    assert tracker.complete([6, 9]) == []
    assert tracker.oldest == 5
    assert tracker.complete([5]) == ["r5", "r6", "r9"]


def test_a_record_that_is_read_a_second_time_while_it_is_pending_is_recognized() -> None:
    tracker: OffsetTracker[str] = OffsetTracker()
    assert tracker.track(1, "first")
    assert not tracker.track(1, "again")
    assert tracker.complete([1, 1, 7]) == ["first"]
    assert tracker.track(1, "once more")


def test_the_records_of_an_attempt_are_acknowledged_together() -> None:
    tracker: OffsetTracker[int] = OffsetTracker()
    for offset in range(7):
        tracker.track(offset, offset)
    assert tracker.complete([0, 3]) == []
    # 1 is complete, but 2 is not, and 0 goes together with 3.
    assert tracker.complete([1]) == []
    assert tracker.complete([2, 5]) == []
    assert tracker.complete([4]) == [0, 1, 2, 3, 4, 5]
    assert tracker.complete([6]) == [6]
