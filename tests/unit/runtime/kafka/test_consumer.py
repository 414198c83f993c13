"""Reading over broken connections, and reading once to the end."""

import asyncio
from typing import Any, NamedTuple

import pytest
from aiokafka.errors import KafkaConnectionError

import runtime.kafka.consumer
from runtime.kafka.consumer import Connection, connected, followed, keep_reconnecting, read_to_end
from tests.support.waiting import eventually_async


class Stored(NamedTuple):
    offset: int


class FakeConsumer:
    """Two partitions; the second one's records arrive in two fetches, and one of them is newer than the end."""

    def __init__(self, *, starts: bool = True) -> None:
        self.starts, self.is_stopped = starts, False
        self._fetches = [{"a": [Stored(0), Stored(1)]}, {"b": [Stored(0)]}, {"b": [Stored(1), Stored(2)]}]
        self._positions = {"a": 0, "b": 0}

    async def start(self) -> None:
        if not self.starts:
            raise KafkaConnectionError("no broker")

    async def stop(self) -> None:
        self.is_stopped = True

    def assignment(self) -> set[str]:
        return set(self._positions)

    async def end_offsets(self, partitions: set[str]) -> dict[str, int]:
        return dict.fromkeys(partitions, 2)

    async def position(self, partition: str) -> int:
        return self._positions[partition]

    async def getmany(self, timeout_ms: int) -> dict[str, list[Stored]]:
        fetch = self._fetches.pop(0)
        self._positions |= {partition: records[-1].offset + 1 for partition, records in fetch.items()}
        return fetch


async def test_a_topic_is_read_up_to_where_it_ended_when_reading_began() -> None:
    assert [record.offset async for record in read_to_end(FakeConsumer())] == [0, 1, 0, 1]


@pytest.mark.parametrize("starts", [True, False])
async def test_a_consumer_is_stopped_also_when_it_could_not_start(starts: bool) -> None:
    consumer = FakeConsumer(starts=starts)
    try:
        async with connected(consumer):
            assert starts
    except KafkaConnectionError:
        assert not starts
    assert consumer.is_stopped


class StopError(Exception):
    pass


async def test_a_session_that_fails_is_followed_by_another() -> None:
    connection = Connection(longest_pause_seconds=0.001)
    sessions: list[str] = []

    async def run_session() -> None:
        sessions.append(connection.describe_wait())
        if len(sessions) == 3:
            raise StopError
        connection.note_contact()
        sessions.append(connection.describe_wait())
        raise KafkaConnectionError("away")

    with pytest.raises(StopError):
        await keep_reconnecting(run_session, connection)
    assert sessions[:2] == ["waiting for Kafka", ""]
    assert sessions[2].startswith("waiting for Kafka for 0 s: ")


async def test_what_waiting_does_not_mend_ends_reading() -> None:
    async def run_session() -> Any:
        raise StopError

    with pytest.raises(StopError):
        await keep_reconnecting(run_session, Connection())


class SilentConsumer(FakeConsumer):
    """Answers as long as ``answers``."""

    answers = True

    async def end_offsets(self, partitions: set[str]) -> dict[str, int]:
        if not self.answers:
            await asyncio.Event().wait()
        return await super().end_offsets(partitions)


async def test_a_connection_is_up_while_the_brokers_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.kafka.consumer, "ASK_SECONDS", 0.001)
    monkeypatch.setattr(runtime.kafka.consumer, "ANSWER_SECONDS", 0.01)
    connection, consumer = Connection(), SilentConsumer()
    async with followed(consumer, connection):
        assert connection.describe_wait() == ""
        consumer.answers = False
        await eventually_async(lambda: not connection.is_up)
        assert connection.describe_wait() == "waiting for Kafka for 0 s: TimeoutError: no answer for 0 s"
        consumer.answers = True
        await eventually_async(lambda: connection.is_up)
    assert consumer.is_stopped
