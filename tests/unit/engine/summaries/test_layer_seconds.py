"""A pod's wait by layer: the parts add up to the whole, whatever was observed and in whatever order."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.layer_seconds import MAX_MARKS, WaitTimes, divide_wait, limit_marks
from engine.summaries.occupancy import Facts
from engine.summaries.pod_facts import BindFact, LayerMark, PodSighting
from schemas.events import PodDescription
from schemas.indices import LAYERS

CREATED = datetime(2026, 1, 1, 12, tzinfo=UTC)


def to_time(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


def mark(layer: str, seconds: float) -> LayerMark:
    return LayerMark("u", layer, to_time(seconds))


def test_each_layer_has_the_time_from_its_mark_to_the_next() -> None:
    marks = [mark("queue", 1), mark("gate", 60), mark("nodes", 70), mark("gate", 80), mark("nodes", 90)]
    times = WaitTimes(to_time(0), to_time(100), to_time(103), to_time(110))
    assert divide_wait(times, marks) == {"queue": 60, "gate": 20, "nodes": 20, "bind": 3, "start": 7}


def test_a_pod_of_which_nothing_was_observed_waited_for_nodes() -> None:
    assert divide_wait(WaitTimes(to_time(0), None, to_time(10), None), []) == {"nodes": 10}


seconds = st.integers(-5, 200)
marks_of_pod = st.lists(st.builds(mark, st.sampled_from(LAYERS), seconds), max_size=12)
times_of_pod = st.builds(
    WaitTimes,
    seconds.map(to_time),
    st.none() | seconds.map(to_time),
    seconds.map(to_time),
    st.none() | seconds.map(to_time),
)


@given(times_of_pod, marks_of_pod)
def test_the_parts_add_up_to_the_whole(times: WaitTimes, marks: list[LayerMark]) -> None:
    end = max(times.since, times.bound_at, times.running_at or times.bound_at)
    parts = divide_wait(times, marks)
    assert sum(parts.values()) == (end - times.since).total_seconds()
    assert all(part > 0 for part in parts.values())


def test_many_marks_are_limited_to_the_changes() -> None:
    marks = [mark("nodes", second) for second in range(2 * MAX_MARKS)] + [mark("queue", 1000)]
    assert limit_marks(marks) == [mark("nodes", 0), mark("queue", 1000)]
    changing = [mark(("nodes", "gate")[second % 2], second) for second in range(3 * MAX_MARKS)]
    assert len(limit_marks(changing)) == MAX_MARKS
    assert limit_marks(changing)[0] == changing[0]


def test_a_placement_has_the_layers_of_its_pod_and_their_sum_is_its_wait() -> None:
    facts = Facts("c", "ml", "p")
    facts.add(BindFact("a", "s", to_time(95), "u", "n1", to_time(100), bound=True, version=1, judged_at=to_time(98)))
    facts.add(PodSighting("u", "n1", "Running", to_time(130), running_at=to_time(120)))
    facts.describe("u", PodDescription(created_at=to_time(0)))
    for entry in (mark("nodes", 60), mark("gate", 1), LayerMark("another", "queue", to_time(2))):
        facts.mark(entry)
    (derived,) = facts.derive_placements()
    placement = derived.placement
    assert placement.layer_seconds == {"gate": 60, "nodes": 38, "bind": 2, "start": 20}
    assert sum(placement.layer_seconds.values()) == placement.start_seconds
