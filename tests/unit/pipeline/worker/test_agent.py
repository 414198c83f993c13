"""The agent and the writer on fakes: what is published, what is acknowledged, and what a rebalance changes."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from pipeline.dead_letter import restore_original
from pipeline.metrics import WorkerMetrics
from pipeline.worker.agent import DecisionsAgent
from runtime.kafka.record import Record, RecordPosition
from schemas.codec.records import EncodedRecord, encode_value
from schemas.events import AttemptSummarized, DevicesJudged, FindingReported, PodObserved, PodRef
from schemas.topics import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    DEAD_LETTER_HEADERS,
    DEAD_LETTERS,
    DEVICE_VERDICTS,
    FINDINGS,
    MESSAGES,
    POD_HISTORIES,
)
from tests.support.builders.attempts import STARTED, a_bind, an_attempt, build_common
from tests.support.fakes.topics import TAKEN_AT_MS, FakeTopics, Log, list_published, stream
from tests.support.harness.worker_in_memory import Worker, a_worker

REFUSING = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}
PLACED = {"node1": [["picked"]]}


def list_lines(topics: FakeTopics) -> list[str]:
    return [line.message for event in topics.list_events(MESSAGES.name) for line in event.lines]


async def test_an_attempt_becomes_a_summary_messages_and_counts_and_is_acknowledged() -> None:
    topics, log = FakeTopics(), Log(partition=2)
    log.append(*an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    (summary,) = list_published(topics).values()
    assert (summary.status, summary.nodes) == ("failed", ["node1", "node2"])
    assert (summary.episode, summary.episode_started_at, summary.changes) == (summary.attempt_id, STARTED, [])
    assert list_lines(topics)[-1] == "no available node, 2 nodes do not meet"
    (counted,) = topics.list_events(ATTEMPT_COUNTS.name)
    assert (counted.adds.version, counted.adds.status, counted.replaces) == (summary.version, "failed", None)
    # Kafka's time of the end of the attempt, which is the third record.
    assert counted.recorded_at == datetime.fromtimestamp(TAKEN_AT_MS / 1000 + 2, UTC)
    assert [
        entry.partition for entry in (*topics.list_sent(ATTEMPT_COUNTS.name), *topics.list_sent(POD_HISTORIES.name))
    ] == [
        2,
        2,
    ]
    assert log.acknowledged == [0, 1, 2]


async def test_device_records_are_passed_on_byte_for_byte() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    plain = log.records[0]
    value, headers = (plain.value or b"").replace(b",", b",\n ", 1), [*plain.headers, ("own", b"\x00")]
    log.records[0] = plain._replace(value=value, headers=headers)
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    (passed_on,) = topics.list_sent(DEVICE_VERDICTS.name)
    assert passed_on[:3] == (plain.key, value, headers)
    assert isinstance(topics.list_events(DEVICE_VERDICTS.name)[0], DevicesJudged)


async def test_device_records_are_passed_on_at_once_while_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.worker.agent.HELD_BYTES", 1)
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt({f"node{number}": [["CardCordoned"]] for number in range(9)}))
    async with a_worker(topics) as worker:
        await worker.read(*log.records[:3])
        assert len(topics.list_sent(DEVICE_VERDICTS.name)) == 2
        assert not topics.list_sent(ATTEMPTS.name)
        await worker.read(*log.records[3:])
    assert len({event.id for event in topics.list_events(DEVICE_VERDICTS.name)}) == 3
    assert log.acknowledged == [record.offset for record in log.records]


async def test_nothing_is_acknowledged_before_it_is_published() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    worker = Worker(topics)
    await worker.decisions.fold(stream(log.records))
    assert log.acknowledged == []


async def test_the_history_is_written_after_the_attempt_and_before_the_acknowledgement() -> None:
    log = Log()

    class Watched(FakeTopics):
        seen: list[tuple[set[str], list[int]]]

        async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
            self.seen.append(({entry.topic for entry in outgoing}, list(log.acknowledged)))
            return await super().send(outgoing)

    topics = Watched()
    topics.seen = []
    log.append(*an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    first, second = topics.seen
    assert ATTEMPTS.name in first[0]
    assert POD_HISTORIES.name not in first[0]
    assert second == ({POD_HISTORIES.name}, [])
    assert log.acknowledged == [0, 1, 2]


async def test_an_open_attempt_holds_back_the_acknowledgement_but_nothing_else() -> None:
    topics, log = FakeTopics(), Log()
    log.append(an_attempt(REFUSING, **build_common("open"))[0], *an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
        assert len(list_published(topics)) == 1
        assert log.acknowledged == []
        await worker.wait(31)
        assert len(list_published(topics)) == 2
        assert log.acknowledged == [0, 1, 2, 3]


async def test_a_record_that_cant_be_decoded_is_dead_lettered_byte_for_byte_and_the_others_are_folded() -> None:
    topics, log = FakeTopics(), Log(partition=7)
    good = an_attempt(REFUSING)
    log.append(good[0])
    log.append_bytes(None, b"\xff{", [("ce_type", b"io.schedulerlog.nodes.judged.v1"), ("mine", b"\x00")])
    log.append(*good[1:])
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    (dead,) = topics.list_sent(DEAD_LETTERS.name)
    assert dead.value == b"\xff{"
    assert dead.headers[len(DEAD_LETTER_HEADERS) :] == list(log.records[1].headers)
    headers = dict(dead.headers)
    assert [headers[name] for name in list(DEAD_LETTER_HEADERS)[:3]] == [b"schedulerlog.decisions", b"7", b"1"]
    assert headers["dead_letter_cause"].startswith(b"value: not JSON")
    assert len(list_published(topics)) == 1
    assert log.acknowledged == [0, 1, 2, 3]


@pytest.mark.parametrize(("year", "cause"), [(9000, "more than a day ahead"), (1999, "before Kubernetes was made")])
async def test_h5_an_attempt_of_a_time_that_cant_be_is_dead_lettered_and_the_others_are_folded(
    year: int, cause: str
) -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING, **build_common("absurd") | {"started_at": STARTED.replace(year=year)}))
    log.append(*an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    dead = topics.list_sent(DEAD_LETTERS.name)
    assert len(dead) == len(an_attempt(REFUSING))
    assert cause in dict(dead[0].headers)["dead_letter_cause"].decode()
    assert [summary.pod.name for summary in list_published(topics).values()] == ["trainer"]
    assert len(log.acknowledged) == len(log.records)


async def test_n1_a_record_is_not_dead_lettered_by_a_clock_that_was_set_since_it_was_found_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    ahead = [timedelta(days=-3_650)]

    checks: list[timedelta] = []

    async def wait_for_right_time() -> None:
        """Return at once for the first record, before the clock is set; then when it is right again."""
        checks.append(ahead[0])
        if len(checks) > 1:
            ahead[0] = timedelta()

    set_clock = SimpleNamespace(now=lambda zone: datetime.now(zone) + ahead[0])
    monkeypatch.setattr("pipeline.worker.agent.datetime", set_clock)
    async with a_worker(topics) as worker:
        monkeypatch.setattr(worker.decisions, "_wait_for_right_time", wait_for_right_time)
        await worker.read(*log.records)
    assert topics.list_sent(DEAD_LETTERS.name) == []
    assert len(list_published(topics)) == 1


async def test_a_dead_letter_can_be_replayed_byte_for_byte() -> None:
    topics, log = FakeTopics(), Log()
    record = log.append_bytes(b"ml/trainer", b"broken", [("ce_type", b"x"), ("ce_type", b"y")])
    async with a_worker(topics) as worker:
        await worker.read(record)
    dead = topics.sent[0]
    again = restore_original(Record(DEAD_LETTERS.name, 0, 3, dead.key, dead.value, dead.headers, 0, lambda: None))
    assert again == (record.key, record.value, list(record.headers), "schedulerlog.decisions", None)


async def test_events_that_the_fold_does_not_use_are_acknowledged() -> None:
    topics, log = FakeTopics(), Log()
    log.append(
        PodObserved(cluster="default", pod=PodRef(namespace="a", name="b"), observed_at=STARTED, phase="Pending")
    )
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    assert log.acknowledged == [0]


async def test_a_bind_publishes_the_attempt_again_and_only_its_own_message() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(PLACED, chosen="node1"), a_bind())
    async with a_worker(topics) as worker:
        await worker.read(*log.records[:-1])
        assert [summary.status for summary in list_published(topics).values()] == ["pending"]
        await worker.read(log.records[-1])
    assert [summary.status for summary in list_published(topics).values()] == ["succeeded"]
    assert len(list_lines(topics)) == 2
    pending, bound = topics.list_events(ATTEMPT_COUNTS.name)
    assert encode_value(bound.replaces) == encode_value(pending.adds)
    assert (pending.adds.status, bound.adds.status) == ("pending", "succeeded")
    assert log.acknowledged == [0, 1, 2, 3]


async def test_a_refused_attempt_counts_under_the_obstacle_that_decided_and_under_every_reason() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt({"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    (counted,) = topics.list_events(ATTEMPT_COUNTS.name)
    pairs = list(zip(counted.adds.dimension, counted.adds.value, strict=True))
    assert [value for dimension, value in pairs if dimension == "obstacle"] == ["CardCordoned"]
    assert {value for dimension, value in pairs if dimension == "reason"} == {"NumaNotFit", "CardCordoned"}


async def test_a_bind_after_a_restart_finds_its_attempt_on_the_topic() -> None:
    topics, log = FakeTopics(), Log()
    wide = {f"gpu-node-{number:05}": [["CardInsufficientMemory"] * 8] for number in range(3_000)} | PLACED
    log.append(*an_attempt(wide, chosen="node1", nodes_a_record=400), a_bind())
    async with a_worker(topics) as worker:
        await worker.read(*log.records[:-1])
    assert len(topics.list_sent(ATTEMPTS.name)) > 1  # it lies there in parts
    async with a_worker(topics) as worker:
        await worker.read(log.records[-1])
    (summary,) = list_published(topics).values()
    assert (summary.status, len(summary.nodes), summary.complete) == ("succeeded", 3_001, True)
    assert list_lines(topics)[1:] == ["Successfully binding node [node1] to ml/trainer"]


async def test_a_bind_whose_attempt_has_expired_from_the_topic_is_published_by_itself() -> None:
    class Expired(FakeTopics):
        async def read_offsets(self, topic: str, partition: int, offsets: Sequence[int]) -> list[Record]:
            return []

    topics, log = Expired(), Log()
    log.append(*an_attempt(PLACED, chosen="node1"), a_bind())
    for records in (log.records[:-1], log.records[-1:]):
        async with a_worker(topics) as worker:
            await worker.read(*records)
    last = topics.list_events(ATTEMPTS.name)[-1]
    assert (last.status, last.nodes, last.complete) == ("succeeded", [], False)
    assert log.acknowledged == [0, 1, 2, 3]


async def test_a_bind_of_an_unknown_attempt_is_published_by_itself() -> None:
    topics, log = FakeTopics(), Log()
    log.append(a_bind(bound=False))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    (summary,) = list_published(topics).values()
    assert (summary.status, summary.complete, summary.bind and summary.bind.bound) == ("failed", False, False)


async def test_a_filter_that_comes_after_its_bind_and_a_restart_is_merged_with_it() -> None:
    topics, log = FakeTopics(), Log()
    log.append(a_bind(), *an_attempt(PLACED, chosen="node1"))
    async with a_worker(topics) as worker:
        await worker.read(log.records[0])
    async with a_worker(topics) as worker:
        await worker.read(*log.records[1:])
    (summary,) = list_published(topics).values()
    assert (summary.status, summary.nodes, summary.complete) == ("succeeded", ["node1"], True)


async def test_the_missing_records_of_an_attempt_that_expired_complete_it() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await worker.read(*log.records[:2])
        await worker.wait(31)
        assert not next(iter(list_published(topics).values())).complete
        await worker.read(log.records[2])
    (summary,) = list_published(topics).values()
    assert (summary.complete, summary.status) == (True, "failed")


async def test_a_summary_of_fewer_records_after_a_restart_is_not_published() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    sent = len(topics.sent)
    async with a_worker(topics) as worker:
        await worker.read(log.records[1])
        await worker.wait(31)
    assert len(topics.sent) == sent


async def test_a_producer_that_sends_everything_twice_changes_nothing() -> None:
    topics, log = FakeTopics(), Log()
    for event in [*an_attempt(PLACED, chosen="node1"), a_bind()]:
        log.append(event, event)
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
        assert worker.decisions.open_attempts == 0
    assert len(list_lines(topics)) == 2
    assert [event.status for event in topics.list_events(ATTEMPTS.name)] == ["pending", "succeeded"]
    assert log.acknowledged == list(range(8))


async def test_after_a_rebalance_nothing_of_a_revoked_partition_is_published_or_acknowledged() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    worker = Worker(topics)
    await worker.decisions.fold(stream(log.records))
    worker.decisions.forget()
    running = asyncio.create_task(worker.writer.run())
    await worker.writer.wait_until_drained()
    running.cancel()
    assert topics.sent == []
    assert log.acknowledged == []
    assert worker.writer.queued_bytes == 0


async def test_a_record_that_is_read_again_while_it_is_pending_counts_once() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    worker = Worker(topics)
    await worker.decisions.fold(stream([*log.records, *log.records]))
    assert log.acknowledged == []
    running = asyncio.create_task(worker.writer.run())
    await worker.writer.wait_until_drained()
    running.cancel()
    assert log.acknowledged == [0, 1, 2]


async def test_reading_pauses_while_the_queue_is_full() -> None:
    topics, log = FakeTopics(), Log()
    for number in range(20):
        log.append(*an_attempt(REFUSING, **build_common(f"pod-{number}")))
    worker = Worker(topics, queue_bytes=10_000)
    reading = asyncio.create_task(worker.decisions.fold(stream(log.records)))
    for _ in range(1_000):  # in a tenth of these turns it would have read everything
        await asyncio.sleep(0)
    assert not reading.done()
    assert worker.writer.queued_bytes <= 10_000
    running = asyncio.create_task(worker.writer.run())
    await reading
    await worker.writer.wait_until_drained()
    running.cancel()
    assert len(list_published(topics)) == 20


async def test_a_defect_of_the_fold_dead_letters_the_record_instead_of_ending_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    monkeypatch.setattr("pipeline.worker.open_attempts.AttemptFold.add", fail)
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
    assert len(topics.list_sent(DEAD_LETTERS.name)) == 3
    assert log.acknowledged == [0, 1, 2]


async def test_without_stored_devices_only_summaries_are_published() -> None:
    topics, log = FakeTopics(), Log()
    log.append(*an_attempt(REFUSING))
    async with a_worker(topics) as worker:
        await DecisionsAgent(worker.writer, WorkerMetrics(), store_devices=False).fold(stream(log.records))
        await worker.writer.wait_until_drained()
    assert list(list_published(topics)) == [build_common()["attempt_id"]]
    assert not topics.list_sent(DEVICE_VERDICTS.name)


async def test_a_finding_of_a_log_reader_is_forwarded_and_one_of_the_pipeline_added() -> None:
    topics, log = FakeTopics(), Log()
    reported = FindingReported(
        **build_common(), finding="ReleasingMemoryCounted", found_at=STARTED, node="node1", device="grp-0"
    )
    log.append(reported, *an_attempt(REFUSING)[1:])
    async with a_worker(topics) as worker:
        await worker.read(*log.records)
        await worker.wait(31)
    ids = {event.finding: event.id for event in topics.list_events(FINDINGS.name)}
    assert ids["ReleasingMemoryCounted"] == reported.id
    assert ids.keys() == {"ReleasingMemoryCounted", "Imbalance"}
    assert log.acknowledged == [0, 1, 2]


async def test_the_ids_of_complete_attempts_are_forgotten_after_a_while_and_it_is_not_published_again() -> None:
    topics, log = FakeTopics(), Log()
    async with a_worker(topics) as worker:
        for number in range(40):
            start = len(log.records)
            log.append(*an_attempt(REFUSING, **build_common(f"pod-{number}")))
            await worker.read(*log.records[start:])
            await worker.wait(60)
        (partition,) = worker.decisions._partitions.values()
        assert len(partition.attempts._complete) <= 12
        sent, start = len(topics.sent), len(log.records)
        log.append(*an_attempt(REFUSING, **build_common("pod-0")))
        await worker.read(*log.records[start:])
    assert len(topics.sent) == sent
    assert all(isinstance(event, AttemptSummarized) for event in topics.list_events(ATTEMPTS.name))
    assert log.acknowledged == [record.offset for record in log.records]
