"""The log of changes: what a subscriber gets, whichever replica it asks."""

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from api.memory.change_log import ChangeLog, Offsets, OffsetsGoneError, Subscription
from api.memory.latest_attempts import CachedAttempt, Taken
from tests.support.stress import IS_STRESS

PARTITIONS = 3


class Replica:
    """Reads the same partitions as others, in its own order, into a log of its own."""

    def __init__(self, topic: list[list[str]], max_count: int) -> None:
        self.topic, self.log = topic, ChangeLog(max_count, 10**9)
        self.log.begin(dict.fromkeys(range(PARTITIONS), 0), range(PARTITIONS))
        self._read = [0] * PARTITIONS

    def read(self, partition: int) -> None:
        offset = self._read[partition]
        if offset < len(self.topic[partition]):
            attempt = CachedAttempt("c", self.topic[partition][offset], offset, float(offset), (b"{}",))
            taken = Taken(attempt, None, is_latest=True, size_bytes=2)
            self.log.read(partition, offset, taken, f"c/n{partition}/p")
            self._read[partition] += 1

    def read_all(self) -> None:
        for partition, values in enumerate(self.topic):
            for _ in values:
                self.read(partition)


def take_changes(log: ChangeLog, subscription: Subscription) -> list[tuple[str, Offsets]]:
    """Take the changes that wait: attempt and position."""
    return [(change.attempt.attempt_id, change.offsets) for change in log.take(subscription)]


@settings(max_examples=6_000 if IS_STRESS else 50)
@given(data=st.data(), max_count=st.integers(1, 12))
def test_a_subscriber_that_comes_back_has_seen_everything_or_is_refused(data: st.DataObject, max_count: int) -> None:
    topic: list[list[str]] = [[] for _ in range(PARTITIONS)]
    replicas, names = [Replica(topic, max_count) for _ in range(2)], count()
    offsets, got = (0,) * PARTITIONS, set[str]()
    for _ in range(data.draw(st.integers(1, 6))):
        for partition in data.draw(st.lists(st.integers(0, PARTITIONS - 1), max_size=5)):
            topic[partition].append(str(next(names)))
        replica = data.draw(st.sampled_from(replicas))
        for partition in data.draw(st.lists(st.integers(0, PARTITIONS - 1), max_size=8)):
            replica.read(partition)
        if not replica.log.has_read(offsets):
            continue
        try:
            subscription = replica.log.subscribe(("c",), offsets)
        except OffsetsGoneError:
            # Then the client reads everything, and watches from now.
            got = {name for partition in topic for name in partition}
            replica.read_all()
            offsets = replica.log.offsets
            continue
        events = take_changes(replica.log, subscription)
        delivered = events[: data.draw(st.integers(0, len(events)))]
        got |= {name for name, _ in delivered}
        offsets = delivered[-1][1] if delivered else offsets
        replica.log.unsubscribe(subscription)
        before = {name for values, offset in zip(topic, offsets, strict=True) for name in values[:offset]}
        assert before <= got, "a place behind what was never shown"


def a_replica(*partitions: int, max_count: int = 100) -> Replica:
    replica = Replica([[f"{index}-{number}" for number in range(9)] for index in range(PARTITIONS)], max_count)
    for partition in partitions:
        replica.read(partition)
    return replica


def test_a_subscriber_gets_what_it_is_about_alone() -> None:
    replica = a_replica()
    every, namespace, pod, other = (
        replica.log.subscribe(key, None) for key in (("c",), ("c", "n1"), ("c", "n1", "p"), ("c", "n1", "p2"))
    )
    replica.read(0)
    replica.read(1)
    assert [len(take_changes(replica.log, subscription)) for subscription in (every, namespace, pod, other)] == [
        2,
        1,
        1,
        0,
    ]


def test_records_that_are_read_again_are_no_changes() -> None:
    replica = a_replica(0, 0, 1)
    subscription = replica.log.subscribe(("c",), None)
    replica._read = [0, 0, 0]
    replica.read(0)
    replica.read(0)
    replica.read(0)
    assert [name for name, _ in take_changes(replica.log, subscription)] == ["0-2"]


def test_a_partition_that_was_added_lacks_nothing_for_who_was_there_before() -> None:
    replica = a_replica(0, 0)
    subscription = replica.log.subscribe(("c",), (1, 0, 0))
    replica.log.begin({0: 2, 1: 0, 2: 0, 3: 0}, {3})
    assert not subscription.is_lost
    assert replica.log.offsets == (2, 0, 0, 0)
    again = replica.log.subscribe(("c",), (1, 0, 0))
    assert [name for name, _ in take_changes(replica.log, again)] == ["0-1"]


def test_a_jump_over_records_ends_every_subscription_and_forgets_the_places_before() -> None:
    replica = a_replica(0, 0)
    subscription = replica.log.subscribe(("c",), None)
    replica.log.begin({0: 5, 1: 0, 2: 0}, {0})
    assert subscription.is_lost
    for expired in ((1, 0, 0), (2, 0, 0)):
        try:
            replica.log.subscribe(("c",), expired)
        except OffsetsGoneError:
            continue
        raise AssertionError(expired)
    assert not replica.log.subscribe(("c",), (5, 0, 0)).is_lost


def test_size_and_number_are_bounded_with_and_without_readers() -> None:
    replica = a_replica(max_count=4)
    slow = replica.log.subscribe(("c",), None)
    replica.read_all()
    assert len(replica.log) == 4
    assert slow.is_lost
    assert not slow.waiting
    assert replica.log.size_bytes == 4 * 502
