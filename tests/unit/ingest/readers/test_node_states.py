"""A state is emitted before a verdict needs it: at first, when it changed, and once a day."""

from datetime import UTC, datetime, timedelta

import pytest

from ingest.readers.node_states import EmittedStates, LoggedState, build_logged_state
from schemas.events import DeviceKind

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_state(node: str = "node1", used: int = 100) -> LoggedState:
    return build_logged_state(node, ["GPU-0"], [DeviceKind(memory_mib=1000)], kind=[0], memory_used_mib=[used])


def test_a_state_is_due_once_and_again_when_it_changed() -> None:
    emitted = EmittedStates()
    states = [a_state(), a_state(), a_state(used=200), a_state(used=200), a_state(), a_state("node2")]
    assert [emitted.mark_if_due(state, NOON) for state in states] == [True, False, True, False, True, True]


@pytest.mark.parametrize(
    ("later", "is_due"),
    [
        (timedelta(hours=23, minutes=59), False),
        (timedelta(days=1), True),
        (timedelta(minutes=-1), False),
        # A state is searched for on the attempt's day and on the day before, not on the day after.
        (timedelta(hours=-12, minutes=-1), True),
    ],
)
def test_an_equal_state_is_due_again_where_the_attempts_day_would_not_find_it(later: timedelta, is_due: bool) -> None:
    emitted = EmittedStates()
    emitted.mark_if_due(a_state(), NOON)
    assert emitted.mark_if_due(a_state(), NOON + later) is is_due


def test_states_of_devices_without_a_node_do_not_replace_each_other() -> None:
    emitted = EmittedStates()
    states = [a_state("", 1), a_state("", 2)] * 2
    assert [emitted.mark_if_due(state, NOON) for state in states] == [True, True, False, False]


def test_what_was_saved_is_not_due_after_a_restart() -> None:
    emitted = EmittedStates()
    emitted.mark_if_due(a_state(), NOON)
    restored = EmittedStates.from_saved(emitted.to_saved())
    assert not restored.mark_if_due(a_state(), NOON)
    assert restored.mark_if_due(a_state(used=200), NOON)


def test_a_revision_follows_from_the_content_alone_and_fits_into_a_json_number() -> None:
    assert a_state().revision == a_state().revision == a_state("node2").revision
    revisions = {a_state(used=used).revision for used in range(1000)}
    assert len(revisions) == 1000
    assert all(0 <= revision < 2**53 for revision in revisions)


def test_what_the_log_does_not_report_of_a_device_is_marked_as_not_reported() -> None:
    event = a_state().to_event("default", "hami-scheduler", NOON)
    assert (event.epoch, event.observed_at, event.memory_used_mib.tolist()) == (0, NOON, [100])
    unreported = (event.index, event.numa, event.cores_used_percent, event.slots_used)
    assert [column.tolist() for column in unreported] == [[-1]] * 4
    assert (event.healthy, event.cordoned) == ([True], [False])
