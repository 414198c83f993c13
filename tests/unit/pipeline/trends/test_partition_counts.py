"""Rows of a partition: however often it is read again, they add up to what each attempt was last known as."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.trends.partition_counts import PartitionCounts
from schemas.codec.records import encode_value
from schemas.events import AttemptCounted, Contribution, PodRef, TrendsCounted
from tests.support.builders.events import STARTED, a_contribution, an_attempt_counted

BEGAN = STARTED.replace(minute=0, second=0, microsecond=0)
REMEMBERED = 3

Rows = dict[tuple[Any, ...], tuple[int, int, int]]
"""Minute, namespace, result, dimension and value to attempts, nodes and devices."""


class Recorded(NamedTuple):
    offset: int
    recorded_at: datetime
    event: AttemptCounted


class Reader:
    """A process that reads a partition and publishes its rows, and what a reader of these rows keeps."""

    def __init__(self) -> None:
        self.published: dict[str, bytes] = {}
        self.rows: dict[tuple[datetime, datetime, int], TrendsCounted] = {}
        self.committed: int | None = None

    def read(self, log: Sequence[Recorded], takes: Iterable[int] = ()) -> PartitionCounts:
        """Read from the committed offset to the end, and publish before each of the offsets ``takes``."""
        counts, due = PartitionCounts(3, self.committed, REMEMBERED), set(takes)
        for record in log[self.committed or 0 :]:
            if record.offset in due:
                self.take(counts)
            counts.put(*record)
        return counts

    def take(self, counts: PartitionCounts) -> None:
        trends, restart_offset = counts.take()
        for event in trends:
            # The same id never has other content, whichever process publishes it and whatever it has read before.
            assert self.published.setdefault(event.id, encode_value(event)) == encode_value(event)
            key = event.started_at, event.recorded_at, event.part
            if key not in self.rows or event.version >= self.rows[key].version:
                self.rows[key] = event
        if restart_offset is not None:
            assert restart_offset >= (self.committed or 0)
            self.committed = restart_offset

    def sum_rows(self) -> Rows:
        sums: Counter[tuple[Any, ...]] = Counter()
        for event in self.rows.values():
            columns = (event.namespace, event.result, event.dimension, event.value)
            for index, row in enumerate(zip(*columns, strict=True)):
                for name in ("attempts", "nodes", "devices"):
                    sums[event.started_at, *row, name] += int(getattr(event, name)[index])
        return {
            key: (sums[*key, "attempts"], sums[*key, "nodes"], sums[*key, "devices"])
            for key in {name[:-1] for name, count in sums.items() if count}
        }


def a_record(
    offset: int, pod: str, version: int, minutes: float, *, adds: Contribution | None = None, **fields: Any
) -> Recorded:
    """A record of a pod's attempt, ``minutes`` after ``BEGAN``."""
    recorded_at = BEGAN + timedelta(minutes=minutes)
    names = {"attempt_id": f"attempt-{pod}", "pod": PodRef(namespace="ml", name=pod, uid=f"uid-{pod}")}
    adds = adds or a_contribution(version=version)
    return Recorded(offset, recorded_at, an_attempt_counted(**names, recorded_at=recorded_at, adds=adds, **fields))


def count_expected(log: Iterable[Recorded]) -> Rows:
    """Count the rows of the latest version of each attempt."""
    latest: dict[str, AttemptCounted] = {}
    for _, _, event in log:
        previous = latest.get(event.attempt_id)
        if previous is None or previous.adds.version < event.adds.version:
            latest[event.attempt_id] = event
    rows: dict[tuple[Any, ...], list[int]] = {}
    for event in latest.values():
        for index, dimension in enumerate(event.adds.dimension):
            minute = event.started_at - timedelta(
                seconds=event.started_at.second, microseconds=event.started_at.microsecond
            )
            row = rows.setdefault((minute, "ml", event.adds.status, dimension, event.adds.value[index]), [0, 0, 0])
            for column, count in enumerate((1, int(event.adds.nodes[index]), int(event.adds.devices[index]))):
                row[column] += count
    return {key: (row[0], row[1], row[2]) for key, row in rows.items()}


@st.composite
def contributions(draw: st.DrawFn, version: int) -> Contribution:
    values = draw(st.lists(st.sampled_from(["A", "B", "C"]), unique=True, max_size=2))
    counts = draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    return a_contribution(
        version=version,
        status=draw(st.sampled_from(["pending", "failed", "succeeded"])),
        dimension=["all"] + ["reason"] * len(values),
        value=["", *values],
        nodes=[7, *counts],
        devices=[70, *(10 * count for count in counts)],
    )


@st.composite
def logs(draw: st.DrawFn) -> list[Recorded]:
    """Attempts of which ever more becomes known, as a worker publishes it that is killed now and then.

    The clock of the decisions may be a little late, as of an attempt that had to be waited for.
    """
    log: list[Recorded] = []
    published: dict[str, list[AttemptCounted]] = {}
    clock = 0.0
    for _ in range(draw(st.integers(0, 40))):
        clock += draw(st.sampled_from([0.1, 1.0, 4.0, 11.0, 45.0]))
        pod = draw(st.sampled_from("abcdefgh"))
        versions = published.setdefault(pod, [])
        if len(log) > 1 and draw(st.integers(0, 4)) == 0:
            # A worker that was killed publishes its last batch again: of it the attempts, in their order.
            for old in log[-draw(st.integers(1, REMEMBERED)) :]:
                log.append(Recorded(len(log), old.recorded_at, old.event))
            continue
        version = len(versions) + 1
        late = draw(st.sampled_from([0.0, 0.0, 0.0, 0.5, 15.0]))
        started_at = versions[0].started_at if versions else BEGAN + timedelta(minutes=draw(st.integers(0, 2)))
        replaces = versions[-1].adds if versions else None
        if versions and any(old.event is versions[-1] for old in log[-REMEMBERED:]) and draw(st.booleans()):
            # One that was killed before it noted what it had published does not know that it replaces anything.
            replaces = None
        adds = draw(contributions(version))
        record = a_record(
            len(log), pod, version, max(clock - late, 0.0), adds=adds, started_at=started_at, replaces=replaces
        )
        versions.append(record.event)
        log.append(record)
    return log


@given(st.data())
def test_rows_of_all_windows_add_up_to_the_latest_version_of_each_attempt_however_often_it_restarts(
    data: st.DataObject,
) -> None:
    log, reader = data.draw(logs()), Reader()
    for end in sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=4))):
        # Killed there: what it has counted since it published last is lost.
        reader.read(log[:end], data.draw(st.sets(st.integers(0, len(log)))))
    reader.take(reader.read(log, data.draw(st.sets(st.integers(0, len(log))))))
    assert reader.sum_rows() == count_expected(log)


@given(st.data())
def test_a_process_that_reads_from_the_beginning_changes_nothing(data: st.DataObject) -> None:
    log, reader = data.draw(logs()), Reader()
    reader.take(reader.read(log))
    reader.committed = None
    reader.take(reader.read(log, range(len(log))))
    assert reader.sum_rows() == count_expected(log)


@pytest.mark.parametrize("expired", range(13))
def test_what_is_left_of_a_log_that_has_expired_overwrites_nothing(expired: int) -> None:
    log: list[Recorded] = []
    for offset in range(12):
        # Of the pods, every third gets a second version.
        pod, version = (f"pod-{offset - 3}", 2) if offset % 3 == 0 and offset else (f"pod-{offset}", 1)
        replaces = log[offset - 3].event.adds if version == 2 else None
        log.append(a_record(offset, pod, version, 3 * offset, replaces=replaces))
    reader = Reader()
    reader.take(reader.read(log, range(len(log))))
    counts = PartitionCounts(3, 0, REMEMBERED)
    for record in log[expired:]:
        counts.put(*record)
    for event in counts.take().trends:
        earlier = reader.rows[event.started_at, event.recorded_at, event.part]
        assert earlier.version > event.version or encode_value(earlier) == encode_value(event)


def test_an_attempt_is_counted_in_the_window_in_which_its_version_was_recorded() -> None:
    reader = Reader()
    first = a_record(0, "a", 1, 8, adds=a_contribution(version=1, status="pending"))
    second = a_record(1, "a", 2, 12, replaces=first.event.adds)
    reader.take(reader.read([first, second]))
    windows = {
        (event.recorded_at - BEGAN, result): int(attempts)
        for event in reader.rows.values()
        for result, dimension, attempts in zip(event.result, event.dimension, event.attempts, strict=True)
        if dimension == "all"
    }
    assert windows == {
        (timedelta(0), "pending"): 1, (timedelta(minutes=10), "pending"): -1, (timedelta(minutes=10), "failed"): 1,
    }  # fmt: skip


def test_a_record_that_comes_later_than_its_window_counts_in_the_open_one() -> None:
    reader = Reader()
    reader.take(reader.read([a_record(0, "a", 1, 3), a_record(1, "b", 1, 25), a_record(2, "c", 1, 4)]))
    attempts = {event.recorded_at - BEGAN: event.attempts.tolist() for event in reader.rows.values()}
    assert attempts == {timedelta(0): [1, 1], timedelta(minutes=20): [2, 2]}


def test_nothing_is_committed_before_enough_attempts_are_remembered() -> None:
    log = [a_record(offset, f"pod-{offset}", 1, 4 * offset) for offset in range(8)]
    reader = Reader()
    reader.take(reader.read(log[:3]))
    assert reader.committed is None
    # Minutes 0 to 8 are the first window, 12 and 16 the second, 20 to 28 the third.
    reader.take(reader.read(log[:4]))
    assert reader.committed == 0
    reader.take(reader.read(log))
    assert reader.committed == 0
    reader.take(reader.read([*log, a_record(8, "pod-8", 1, 32)]))
    assert reader.committed == 5


def test_only_the_windows_that_are_needed_are_in_memory() -> None:
    counts = PartitionCounts(0, None, REMEMBERED)
    for offset in range(200):
        counts.put(*a_record(offset, f"pod-{offset}", 1, offset))
        assert len(counts) <= 20


def test_a_pod_counts_once_in_a_minute() -> None:
    reader = Reader()
    again = {"attempt_id": "another", "pod": PodRef(namespace="ml", name="a", uid="uid-a")}
    other = an_attempt_counted(**again, recorded_at=BEGAN)
    reader.take(reader.read([a_record(0, "a", 1, 0), Recorded(1, BEGAN, other), a_record(2, "b", 1, 0)]))
    (event,) = reader.rows.values()
    assert (event.attempts.tolist(), event.pods.tolist()) == ([3, 3], [2, 2])


def test_two_clusters_with_equal_names_are_counted_apart() -> None:
    reader = Reader()
    log = [
        Recorded(offset, BEGAN, an_attempt_counted(cluster=cluster, attempt_id=f"of-{cluster}", recorded_at=BEGAN))
        for offset, cluster in enumerate(("east", "west"))
    ]
    trends, _ = reader.read(log).take()
    assert [(event.cluster, event.attempts.tolist(), event.pods.tolist()) for event in trends] == [
        ("east", [1, 1], [1, 1]),
        ("west", [1, 1], [1, 1]),
    ]


def test_a_batch_that_was_published_again_in_a_later_window_is_remembered_from_both_places() -> None:
    """A process that begins behind the first of the two must not forget other windows than one that read both."""
    first = [a_record(0, "a", 1, 0), a_record(1, "b", 1, 0), a_record(2, "c", 1, 0), a_record(3, "d", 1, 12)]
    begun = a_record(4, "e", 1, 22)
    again = [Recorded(5 + index, old.recorded_at, old.event) for index, old in enumerate((first[2], first[3], begun))]
    # Before the last one the worker was killed a second time, and does not know that it had published a first version.
    log, reader = [*first, begun, *again, a_record(8, "g", 1, 23), a_record(9, "f", 1, 33)], Reader()
    reader.take(reader.read(log))
    assert reader.committed is not None
    log.append(a_record(10, "d", 2, 34))
    reader.take(reader.read(log))
    assert reader.sum_rows() == count_expected(log)
