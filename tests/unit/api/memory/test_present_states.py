"""N2: the present state of a node, whatever the clocks of those who write it show."""

from datetime import timedelta

import hypothesis.strategies as st
from hypothesis import given, settings

from api.memory.cluster_devices import ClusterDevices
from schemas.ids import count_microseconds
from tests.support.builders.events import STARTED
from tests.support.builders.node_states import a_node_state
from tests.support.stress import count_examples

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


class Topic:
    """The topic of node states: the broker's clock is right."""

    def __init__(self) -> None:
        self.devices, self.now = ClusterDevices(is_caught_up=True), STARTED

    def write(self, epoch: int, revision: int, used_mib: int, clock_error: timedelta = timedelta(0)) -> None:
        self.now += SECOND
        state = a_node_state(
            "node1", 1, epoch=epoch, revision=revision, observed_at=self.now + clock_error, memory_used_mib=[used_mib]
        )
        self.devices.take(state, self.now)

    @property
    def used_mib(self) -> int:
        columns = self.devices.find_columns("default")
        entry = columns and columns.get_entry("node1")
        assert columns
        assert entry
        return int(columns.devices["used_memory"][entry.rows_slice][0])


def test_a_clock_that_was_an_hour_ahead_hides_no_later_state() -> None:
    topic, epoch = Topic(), count_microseconds(STARTED - HOUR)
    topic.write(epoch, 1, 0, clock_error=HOUR)
    topic.write(epoch, 2, 39_000)
    assert topic.used_mib == 39_000


def test_a_scheduler_that_started_three_days_ahead_hides_no_later_one() -> None:
    topic, ahead = Topic(), count_microseconds(STARTED + timedelta(days=3))
    topic.write(ahead, 1, 0, clock_error=timedelta(days=3))
    topic.write(ahead, 2, 10_000)
    assert topic.used_mib == 10_000
    # Its successor on the same spool has the next epoch, one on another its start.
    topic.write(ahead + 1, 1, 20_000)
    assert topic.used_mib == 20_000
    topic.write(count_microseconds(topic.now), 1, 30_000)
    assert topic.used_mib == 30_000


def test_a_forged_epoch_holds_no_longer_than_the_next_scheduler_start() -> None:
    topic = Topic()
    topic.write(2**62, 2**62, 0, clock_error=timedelta(days=2_000_000))
    topic.write(count_microseconds(topic.now), 1, 30_000)
    assert topic.used_mib == 30_000


def test_what_a_former_leader_sends_late_changes_nothing() -> None:
    topic = Topic()
    former, present = count_microseconds(STARTED - HOUR), count_microseconds(STARTED)
    topic.write(former, 1, 10_000)
    topic.write(present, 1, 20_000)
    topic.write(former, 2, 11_000)
    assert topic.used_mib == 20_000


@given(st.lists(st.integers(min_value=-5 * 86_400, max_value=5 * 86_400), min_size=1, max_size=12))
@settings(max_examples=count_examples(200))
def test_the_last_state_of_a_scheduler_counts_if_its_clock_only_ran_ahead(errors: list[int]) -> None:
    topic = Topic()
    epoch = count_microseconds(STARTED) + max(errors[0], 0) * 1_000_000
    for number, error in enumerate(errors):
        topic.write(epoch, number, number, clock_error=timedelta(seconds=max(error, 0)))
    assert topic.used_mib == len(errors) - 1
