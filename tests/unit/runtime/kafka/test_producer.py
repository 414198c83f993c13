"""Records are sent until they are acknowledged, in their order, over as many producers as that takes."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError

from runtime.kafka import producer
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import RecordPosition
from runtime.settings.kafka_connection import build_kafka_connection
from schemas.codec.records import EncodedRecord


class FakeKafka:
    """Makes the producers of one sink; ``script`` says what happens to each record that is sent, and to each start."""

    def __init__(self, *script: Exception | None) -> None:
        self.script = list(script)
        self.taken: list[bytes] = []
        self.producers = self.stopped = 0

    def __call__(self, *_: object, **__: object) -> "FakeKafka":
        self.producers += 1
        return self

    async def start(self) -> None:
        self._fail_if_scripted()

    async def stop(self) -> None:
        self.stopped += 1

    async def send(self, _: str, value: bytes, **__: object) -> Any:
        future: asyncio.Future[RecordPosition] = asyncio.get_running_loop().create_future()
        try:
            self._fail_if_scripted()
        except RequestTimedOutError as error:
            future.set_exception(error)
        else:
            self.taken.append(value)
            future.set_result(RecordPosition(0, len(self.taken) - 1))
        return future

    def _fail_if_scripted(self) -> None:
        if self.script and (failure := self.script.pop(0)):
            raise failure


def build_outgoing(*values: bytes) -> list[EncodedRecord]:
    return [EncodedRecord(b"key", value, [], "topic") for value in values]


def _shorten(outgoing: EncodedRecord) -> EncodedRecord:
    return outgoing._replace(topic="dead letters", value=outgoing.value[:5])


def a_sink(kafka: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> tuple[TopicsSink, list[None]]:
    monkeypatch.setattr(producer, "create_idempotent_producer", kafka)
    retries: list[None] = []
    return TopicsSink(
        build_kafka_connection("a:1"),
        1024,
        count_retry=lambda: retries.append(None),
        instead_of=_shorten,
        max_backoff_seconds=0.001,
    ), retries


async def test_records_are_sent_once_where_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = FakeKafka()
    sink, retries = a_sink(kafka, monkeypatch)
    assert list(await sink.send(build_outgoing(b"1", b"2"))) == [RecordPosition(0, 0), RecordPosition(0, 1)]
    assert list(await sink.send(build_outgoing(b"3"))) == [RecordPosition(0, 2)]
    assert (kafka.taken, kafka.producers, retries) == ([b"1", b"2", b"3"], 1, [])


async def test_after_a_failure_all_are_sent_again_by_a_new_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = FakeKafka(None, None, RequestTimedOutError())
    sink, retries = a_sink(kafka, monkeypatch)
    await sink.send(build_outgoing(b"1", b"2"))
    assert (kafka.taken, kafka.producers, len(retries)) == ([b"1", b"1", b"2"], 2, 1)
    assert not sink.is_waiting


async def test_a_producer_that_can_not_start_is_stopped_and_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka = FakeKafka(KafkaConnectionError(), KafkaConnectionError())
    sink, _ = a_sink(kafka, monkeypatch)
    await sink.send(build_outgoing(b"1"))
    assert (kafka.taken, kafka.producers, kafka.stopped) == ([b"1"], 3, 2)


async def test_nothing_to_send_needs_no_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = FakeKafka()
    sink, _ = a_sink(kafka, monkeypatch)
    await sink.send([])
    await sink.close()
    assert kafka.producers == 0


@pytest.mark.parametrize("turns", range(8))
async def test_a_stop_while_the_last_record_is_being_acknowledged_stops(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged: asyncio.Future[RecordPosition] = asyncio.get_running_loop().create_future()

    class Slow(FakeKafka):
        async def send(self, _: str, value: bytes, **__: object) -> Any:
            return acknowledged

    sink, _ = a_sink(Slow(), monkeypatch)

    async def work() -> None:
        await sink.send(build_outgoing(b"1"))
        await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await asyncio.sleep(0.01)
    acknowledged.set_result(RecordPosition(0, 0))
    # Whichever turn of the loop the cancellation meets.
    for _turn in range(turns):
        await asyncio.sleep(0)
    working.cancel()
    done, _pending = await asyncio.wait([working], timeout=5)
    assert done, "it works on, although it was cancelled"


async def test_m5_a_record_that_its_topic_never_takes_is_replaced_and_those_beside_it_are_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka = FakeKafka()
    sink, retries = a_sink(kafka, monkeypatch)
    assert await sink.send(build_outgoing(b"a", b"x" * 1_040_000, b"c")) == [
        RecordPosition(0, 0),
        RecordPosition(0, 1),
        RecordPosition(0, 2),
    ]
    assert kafka.taken == [b"a", b"xxxxx", b"c"]
    assert not retries
    assert not sink.is_waiting
