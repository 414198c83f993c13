"""Producer at the spool: nothing moves on before its acknowledgement, and no failure loses or reorders."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, OutOfOrderSequenceNumber

from runtime.settings.kafka_connection import build_kafka_connection
from scheduler.metrics import Metrics
from scheduler.publish import kafka_publisher
from scheduler.publish.kafka_publisher import Publisher
from scheduler.publish.spool.frames import Entry, EntryKind
from scheduler.publish.spool.spool import Spool
from schemas.codec.records import encode
from schemas.codec.trace_context import NO_TRACE, Trace, trace_of, with_trace
from schemas.events import AttemptConcluded, Request
from tests.support.builders.attempts import an_attempt
from tests.support.builders.spool_entries import Clock, a_verdict
from tests.support.harness.fake_producer import FakeKafka


def a_conclusion(**fields: Any) -> AttemptConcluded:
    event = an_attempt({"node1": [["picked"]]})[-1]
    assert isinstance(event, AttemptConcluded)
    return event.model_copy(update=fields)


class Publishing:
    def __init__(self, folder: Path) -> None:
        self.kafka, self.clock = FakeKafka(), Clock()
        self.spool = Spool(folder, clock=self.clock)
        self.publisher = Publisher(self.spool, build_kafka_connection("broker:9092"), self.clock, Metrics(), self.kafka)
        self.task: asyncio.Task[None] | None = None

    def append(self, *names: str) -> None:
        for name in names:
            self.spool.append([a_verdict(name)])

    def start(self) -> None:
        self.task = asyncio.create_task(self.publisher.run())

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():  # noqa: ASYNC110 - looks from outside
                await asyncio.sleep(0.005)

    async def wait_until_sent(self) -> None:
        await self.until(lambda: self.spool.unsent_bytes == 0)


@pytest.fixture
async def publishing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Publishing]:
    monkeypatch.setattr(kafka_publisher, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(kafka_publisher, "SILENCE_SECONDS", 0.05)
    publisher = Publishing(tmp_path)
    yield publisher
    if publisher.task:
        publisher.task.cancel()
        await asyncio.gather(publisher.task, return_exceptions=True)
    publisher.spool.close()


async def test_everything_is_sent_in_order(publishing: Publishing) -> None:
    publishing.append("a", "b")
    publishing.start()
    await publishing.wait_until_sent()
    publishing.append("c")
    await publishing.wait_until_sent()
    assert publishing.kafka.log == [b"a", b"b", b"c"]
    assert publishing.publisher.problem == ""


@pytest.mark.parametrize("failure", [OutOfOrderSequenceNumber(), KafkaError("any"), RuntimeError("a bug below us")])
async def test_a_producer_that_fails_is_replaced_and_the_batch_sent_again(
    publishing: Publishing, failure: Exception
) -> None:
    failures = {("acknowledgement", b"b"): failure}
    publishing.kafka.failure = lambda site, name: failures.pop((site, name), None)
    publishing.append("a", "b", "c")
    publishing.start()
    await publishing.wait_until_sent()
    assert publishing.kafka.producers == 2
    assert publishing.kafka.log[-3:] == [b"a", b"b", b"c"]


async def test_nothing_moves_on_before_the_acknowledgement(publishing: Publishing) -> None:
    publishing.kafka.holds_back = True
    publishing.append("a")
    waiting = publishing.spool.unsent_bytes
    publishing.start()
    await publishing.until(lambda: "no acknowledgement" in publishing.publisher.problem)
    assert publishing.spool.unsent_bytes == waiting


async def test_brokers_that_remain_silent_are_looked_up_again(
    publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_publisher, "GIVE_UP_SECONDS", 0.05)
    publishing.kafka.holds_back = True
    publishing.append("a")
    publishing.start()
    await publishing.until(lambda: publishing.kafka.producers > 1)
    publishing.kafka.holds_back = False
    await publishing.wait_until_sent()
    assert publishing.kafka.log == [b"a"]


async def test_a_missing_topic_is_named_with_the_way_out(
    publishing: Publishing, caplog: pytest.LogCaptureFixture
) -> None:
    publishing.kafka.topics.clear()
    publishing.append("a")
    publishing.start()
    await publishing.until(lambda: publishing.kafka.producers > 2)
    assert "schedulerlog.nodes, schedulerlog.node-states, schedulerlog.schedulers: run" in publishing.publisher.problem
    assert caplog.text.count("schedulerlog pipeline provision") == 1
    publishing.kafka.topics = {topic.name for topic in kafka_publisher.TOPICS}
    await publishing.wait_until_sent()


async def test_a_broker_that_is_away_is_reported_once(publishing: Publishing, caplog: pytest.LogCaptureFixture) -> None:
    refusals = [KafkaConnectionError("refused") for _ in range(4)]
    publishing.kafka.failure = lambda site, _: refusals.pop() if site == "start" and refusals else None
    publishing.append("a")
    publishing.start()
    await publishing.wait_until_sent()
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "decisions wait in the spool" in warnings[0].getMessage()


async def test_m5_in_the_place_of_a_record_that_kafka_never_takes_a_shorter_one_is_sent(
    publishing: Publishing, caplog: pytest.LogCaptureFixture
) -> None:
    concluded = a_conclusion(requests=[Request(container="c" * 250)] * 5_000)
    trace = Trace(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", b"rojo=00f067aa0ba902b7")
    large = Entry(EntryKind.VERDICT, with_trace(encode(concluded, "schedulerlog.decisions"), trace), 1)
    publishing.append("a")
    publishing.spool.append([large])
    publishing.append("c")
    publishing.start()
    await publishing.wait_until_sent()
    assert publishing.kafka.log == [b"a", concluded.attempt_id.encode(), b"c"]
    (sent,) = [value for value in publishing.kafka.values if len(value) > 10_000]
    assert orjson.loads(sent)["requests_left_out"] == 4_500
    assert [trace_of(headers) for headers in publishing.kafka.headers] == [NO_TRACE, trace, NO_TRACE]
    assert f"record {concluded.id} of 18" in caplog.text


async def test_m5_a_record_that_cant_be_shortened_does_not_hold_back_the_others(
    publishing: Publishing, caplog: pytest.LogCaptureFixture
) -> None:
    record = encode(a_conclusion(), "schedulerlog.decisions")
    rubbish = Entry(EntryKind.VERDICT, record._replace(value=b"x" * 2**20), 1)
    publishing.append("a")
    publishing.spool.append([rubbish])
    publishing.append("c")
    publishing.start()
    await publishing.wait_until_sent()
    assert publishing.kafka.log == [b"a", b"c"]
    assert "is too large for schedulerlog.decisions and is lost" in caplog.text


async def test_draining_ends_when_all_is_sent_or_the_time_is_up(publishing: Publishing) -> None:
    publishing.append("a")
    await publishing.publisher.drain(0.02)
    assert publishing.spool.unsent_bytes > 0
    publishing.start()
    await publishing.publisher.drain(10)
    assert publishing.spool.unsent_bytes == 0
