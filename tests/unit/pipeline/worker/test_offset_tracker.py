from hypothesis import given
from hypothesis import strategies as st

from pipeline.worker.offset_tracker import OffsetTracker


@given(st.lists(st.integers(0, 1_000), unique=True, max_size=60).map(sorted), st.randoms(use_true_random=False))
def test_whatever_is_done_first_acknowledgement_follows_the_offsets(offsets: list[int], chance: object) -> None:
    tracker: OffsetTracker[int] = OffsetTracker()
    for offset in offsets:
        assert tracker.read(offset, offset)
    finished, ready = set(), []
    order = list(offsets)
    chance.shuffle(order)  # type: ignore[attr-defined]
    for offset in order:
        finished.add(offset)
        ready += tracker.done([offset])
        prefix = [each for place, each in enumerate(offsets) if set(offsets[: place + 1]) <= finished]
        assert ready == prefix
    assert len(tracker) == 0


def test_what_is_not_done_holds_back_all_behind_it() -> None:
    tracker: OffsetTracker[str] = OffsetTracker()
    for offset in (5, 6, 9):
        tracker.read(offset, f"r{offset}")
    assert tracker.done([6, 9]) == []
    assert tracker.oldest == 5
    assert tracker.done([5]) == ["r5", "r6", "r9"]


def test_a_record_read_again_while_it_waits_is_known() -> None:
    tracker: OffsetTracker[str] = OffsetTracker()
    assert tracker.read(1, "first")
    assert not tracker.read(1, "again")
    assert tracker.done([1, 1, 7]) == ["first"]
    assert tracker.read(1, "once more")
