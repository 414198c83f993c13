"""Which minutes are kept in memory: those that are being counted, and not what was counted long ago."""

from datetime import timedelta

from pipeline.worker.minute_counts import KEPT_SECONDS, MinuteCounts, minute_of
from schemas.ids import attempt_id
from summaries.fold import summarize
from summaries.trends import contribution
from tests.support.builders.attempts import STARTED, about, an_attempt
from tests.support.harness.worker_in_memory import Clock


class Counting:
    """Minutes as the writer uses them; a second passes with every attempt."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.minutes = MinuteCounts(None, clock=self.clock)

    def an_attempt(self, second: int) -> None:
        started = STARTED + timedelta(seconds=second)
        common = about("trainer") | {"started_at": started, "attempt_id": attempt_id("hami-scheduler", "uid", started)}
        key = minute_of(0, started)
        if self.minutes.unknown([key]):
            self.minutes.load(key, (), ())
        summary = summarize(an_attempt({"node1": [["CardCordoned"]]}, **common))
        self.minutes.put(0, started, contribution(summary, None))
        self.clock.now += 1

    def write(self) -> int:
        """How many documents were to be written."""
        return len(self.minutes.take()[0])


def test_a_minute_that_was_written_and_does_not_change_any_more_is_forgotten() -> None:
    counting = Counting()
    largest = 0
    for second in range(0, 3_600, 20):
        counting.an_attempt(second)
        counting.clock.now += 19
        counting.write()
        largest = max(largest, len(counting.minutes))
    assert largest <= KEPT_SECONDS / 60 + 3


def test_a_minute_that_is_being_written_is_kept_however_long_that_takes() -> None:
    counting = Counting()
    counting.an_attempt(0)
    counting.write()
    counting.clock.now += 2 * KEPT_SECONDS  # the index is down
    counting.an_attempt(60)
    counting.write()
    assert len(counting.minutes) == 2
    counting.clock.now += 1.1 * KEPT_SECONDS
    counting.write()
    assert len(counting.minutes) == 1


def test_an_attempt_that_comes_late_keeps_its_minute() -> None:
    counting = Counting()
    counting.an_attempt(0)
    counting.write()
    counting.write()
    counting.clock.now += 0.9 * KEPT_SECONDS
    counting.an_attempt(1)
    counting.clock.now += 0.2 * KEPT_SECONDS
    assert counting.write() > 0
    counting.write()
    assert len(counting.minutes) == 1
