"""Attempts that a restarted reader of events reads once more, without the verdicts that it had worked out at first."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from schemas.events import AttemptConcluded, AttemptEvent
from schemas.events.pod_histories import KEPT_ATTEMPTS
from schemas.topics import ATTEMPT_COUNTS, ATTEMPTS, MESSAGES
from tests.support.builders.attempts import STARTED, Devices, an_attempt
from tests.support.fakes.topics import FakeTopics, Log, list_published
from tests.support.harness.worker_in_memory import a_worker

JUDGED: Devices = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}
COUNT = 2 * KEPT_ATTEMPTS


def refuse(number: int, devices: Devices, *, reader: str = "kube-events") -> list[AttemptEvent]:
    """Refuse the pod, five minutes after the attempt before."""
    started_at = STARTED + timedelta(minutes=5 * number)
    records = an_attempt(devices, attempt_id=f"{number:032x}", started_at=started_at, reader=reader)
    return [
        record.model_copy(update={"ended_at": started_at}) if isinstance(record, AttemptConcluded) else record
        for record in records
    ]


async def publish(topics: FakeTopics, attempts: Sequence[Sequence[AttemptEvent]], log: Log) -> None:
    start = len(log.records)
    for records in attempts:
        log.append(*records)
    async with a_worker(topics) as worker:
        await worker.read(*log.records[start:])


def get_verdicts(topics: FakeTopics) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Get the version and the judged nodes of each attempt as it was published last."""
    return {name: (summary.version, tuple(summary.nodes)) for name, summary in list_published(topics).items()}


async def test_a_restarted_reader_of_events_changes_nothing_that_has_verdicts() -> None:
    topics, log = FakeTopics(), Log()
    await publish(topics, [refuse(number, JUDGED) for number in range(COUNT)], log)
    before, lines = get_verdicts(topics), len(topics.list_events(MESSAGES.name))
    # The objects of then are gone, so that the same refusals have no verdicts now; the last one is new.
    await publish(topics, [refuse(number, {}) for number in range(COUNT + 1)], log)
    assert len(topics.list_events(ATTEMPTS.name)) == COUNT + 1
    assert len(topics.list_events(ATTEMPT_COUNTS.name)) == COUNT + 1
    assert len(topics.list_events(MESSAGES.name)) == lines + 1
    after = get_verdicts(topics)
    assert {attempt_id: after[attempt_id] for attempt_id in before} == before
    assert {nodes for _, nodes in before.values()} == {("node1", "node2")}


async def test_attempts_of_before_the_first_known_one_are_published() -> None:
    topics, log = FakeTopics(), Log()
    await publish(topics, [refuse(number, JUDGED) for number in range(3, COUNT)], log)
    await publish(topics, [refuse(number, {}) for number in range(3)], log)
    assert len(list_published(topics)) == COUNT


@pytest.mark.parametrize("reader", ["hami-log", "kai-log"])
async def test_logs_may_be_read_in_any_order(reader: str) -> None:
    topics, log = FakeTopics(), Log()
    late = [number for number in range(COUNT) if number != 1]
    await publish(topics, [refuse(number, JUDGED, reader=reader) for number in late], log)
    await publish(topics, [refuse(1, JUDGED, reader=reader)], log)
    assert len(list_published(topics)) == COUNT
