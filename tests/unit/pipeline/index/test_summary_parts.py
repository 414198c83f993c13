"""Parts wait for each other as long as that makes sense, and hold back no more than they have to."""

import pytest

from pipeline.index.summary_parts import GIVE_UP_MS, SummaryPart, SummaryParts
from schemas.codec.records import encode
from schemas.events import AttemptSummarized
from tests.support.builders.summary_parts import build_parts
from tests.support.fakes.documents_and_records import TopicLog

PARTITION = ("schedulerlog.attempts", 0)


class Reading:
    def __init__(self, max_bytes: int = 1_000_000) -> None:
        self.parts, self.log = SummaryParts(max_bytes), TopicLog()

    def read(self, *summaries: AttemptSummarized, partition: tuple[str, int] = PARTITION) -> list[int] | None:
        """Append the parts and read them; return the offsets of the summary that the last one completes."""
        complete = None
        for summary in summaries:
            self.log.append(summary)
            record = self.log.records[-1]
            complete = self.parts.add(partition, SummaryPart(summary, record))
            self.parts.advance(partition, record.timestamp)
        return None if complete is None else [part.record.offset for part in complete]

    def wait(self, milliseconds: int) -> None:
        self.log.now_ms += milliseconds

    def find_held_offset(self) -> int | None:
        return self.parts.find_first_offset(PARTITION)


def test_the_last_part_completes_the_summary_in_whatever_order_they_come() -> None:
    reading, (first, second, third) = Reading(), build_parts(3)
    assert reading.read(third, first) is None
    assert reading.find_held_offset() == 0
    assert reading.read(second) == [1, 2, 0]
    assert (reading.find_held_offset(), len(reading.parts)) == (None, 0)


def test_a_summary_of_one_record_waits_for_nothing() -> None:
    reading = Reading()
    assert reading.read(*build_parts(1)) == [0]


def test_parts_of_two_versions_are_not_mixed() -> None:
    reading, old, new = Reading(), build_parts(2), build_parts(2, version=2)
    assert reading.read(old[0], new[1]) is None
    assert reading.read(new[0]) == [2, 1]


def test_a_greater_version_that_is_whole_ends_the_wait_for_a_smaller_one() -> None:
    reading, old, new = Reading(), build_parts(2), build_parts(2, version=2)
    reading.read(old[0], *new)
    assert (reading.find_held_offset(), reading.parts.take_given_up(), reading.parts.take_given_up()) == (None, 1, 0)


def test_a_greater_version_that_is_not_whole_ends_no_wait() -> None:
    reading, old, new = Reading(), build_parts(2), build_parts(2, version=2)
    reading.read(old[0], new[0])
    assert reading.read(old[1]) == [0, 2]


def test_all_parts_published_again_after_a_kill_are_one_summary() -> None:
    reading, parts = Reading(), build_parts(3)
    reading.read(parts[0], parts[1])
    assert reading.read(*parts) == [2, 3, 4]
    reading.read(parts[1])
    assert reading.read(parts[0], parts[2]) == [6, 5, 7]


def test_what_is_missing_for_minutes_of_the_partition_is_given_up() -> None:
    reading, (first, _), others = Reading(), build_parts(2), build_parts(1, attempt_id="1e" * 16)
    reading.read(first)
    reading.wait(GIVE_UP_MS)
    reading.read(*others)
    assert reading.find_held_offset() == 0
    reading.wait(1)
    reading.read(*others, partition=("schedulerlog.attempts", 1))
    assert reading.find_held_offset() == 0, "the time of another partition does not count"
    reading.read(*others)
    assert (reading.find_held_offset(), reading.parts.take_given_up()) == (None, 1)


def test_the_wait_begins_again_with_every_part() -> None:
    reading, parts = Reading(), build_parts(3)
    for part in parts[:2]:
        reading.read(part)
        reading.wait(GIVE_UP_MS)
    assert reading.read(parts[2]) == [0, 1, 2]


@pytest.mark.parametrize("over", [0, 1])
def test_memory_is_bounded_and_the_oldest_is_given_up(over: int) -> None:
    summaries = [build_parts(2, attempt_id=f"{number:032}") for number in range(3)]
    size = len(encode(summaries[0][0]).value)
    reading = Reading(max_bytes=3 * size - over)
    for first, _ in summaries:
        reading.read(first)
        reading.wait(1)
    assert (reading.find_held_offset(), reading.parts.take_given_up()) == (over, over)


def test_parts_that_disagree_about_their_number_begin_again() -> None:
    reading = Reading()
    reading.read(build_parts(3)[0])
    assert reading.read(*build_parts(2)) == [1, 2]


def test_nothing_waits_after_partitions_have_moved() -> None:
    reading, (first, second) = Reading(), build_parts(2)
    reading.read(first)
    reading.parts.clear()
    assert reading.read(second) is None
    assert reading.find_held_offset() == 1
