"""Delay of an attempt until the API has it in memory."""

from typing import Any

from api.memory.attempts_consumer import AttemptsTopic, measure_decision_delay
from api.memory.latest_attempts import LatestAttempts
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.events import AttemptSummarized
from tests.support.builders.events import a_repetition, a_report, a_summary
from tests.support.fakes.documents_and_records import TopicLog

DECIDED = 1_770_000_000.0
"""Unix time in seconds of the latest event; a version counts microseconds."""


def an_attempt(**fields: Any) -> AttemptSummarized:
    return a_summary(version=int(DECIDED * 1_000_000), **fields)


def test_a_delay_is_counted_from_the_latest_event_of_the_attempt() -> None:
    assert measure_decision_delay(an_attempt(), DECIDED + 0.25) == ("scheduler", 0.25)
    again = a_repetition(version=int(DECIDED * 1_000_000), reports=[a_report()])
    assert measure_decision_delay(again, DECIDED + 2) == ("scheduler", 2)


def test_a_clock_that_is_behind_makes_no_delay_below_zero() -> None:
    assert measure_decision_delay(an_attempt(), DECIDED - 3) == ("scheduler", 0.0)


def test_an_attempt_in_parts_counts_once_when_it_is_whole() -> None:
    parts = [an_attempt(part=part, parts=3) for part in range(3)]
    assert [measure_decision_delay(part, DECIDED + 1) is not None for part in parts] == [False, False, True]


def test_a_decision_that_waited_for_hours_on_the_schedulers_disk_is_late() -> None:
    assert measure_decision_delay(an_attempt(), DECIDED + 7200) == ("scheduler", 7200)


def test_an_archive_of_another_schedulers_log_is_not_late() -> None:
    read = an_attempt(reports=[a_report(source="hami-log")])
    assert measure_decision_delay(read, DECIDED + 60) == ("hami-log", 60)
    assert measure_decision_delay(read, DECIDED + 7200) is None


async def test_what_the_replay_reads_is_not_measured_and_what_comes_after_it_is() -> None:
    measured: list[str] = []
    latest = LatestAttempts(max_pods=10, max_bytes=1_000_000)
    topic = AttemptsTopic(build_kafka_connection("127.0.0.1:1"), latest, 10, lambda source, _: measured.append(source))
    log = TopicLog()
    log.append(a_summary(), an_attempt(attempt_id="1e" * 16))
    await topic._take(log.records[:1])
    topic.state.replayed = True
    await topic._take(log.records[1:])
    assert measured == ["scheduler"]
    assert topic.state.records == 2
