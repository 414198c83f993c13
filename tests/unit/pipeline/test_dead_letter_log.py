"""Log of dead letters: a few lines a minute and the number of those left out, so that no producer can fill it."""

import logging

import pytest

from pipeline.dead_letter import LINES, PERIOD_SECONDS, DeadLetterLog
from runtime.kafka.record import Record

logger = logging.getLogger(__name__)


def a_record(offset: int) -> Record:
    return Record("schedulerlog.decisions", 7, offset, None, b"no JSON", ())


def test_l12_a_hundred_thousand_rejected_records_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    now = 1000.0
    log = DeadLetterLog(logger, lambda: now)
    for offset in range(100_000):
        log.note(a_record(offset), "value: not JSON")
    assert caplog.messages[0] == "dead-lettered schedulerlog.decisions[7]@0: value: not JSON"
    assert len(caplog.messages) == LINES + 1
    assert caplog.messages[-1] == "more dead letters within this minute are counted and not logged"
    caplog.clear()
    now += PERIOD_SECONDS
    log.note(a_record(100_000), "value: not JSON")
    assert caplog.messages == [
        "99990 more records were dead-lettered and not logged",
        "dead-lettered schedulerlog.decisions[7]@100000: value: not JSON",
    ]
