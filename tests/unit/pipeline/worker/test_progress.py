import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from pipeline.worker import faust_app, progress
from pipeline.worker.progress import StuckError, WorkerProgress
from runtime.kafka import consumer

STUCK_SECONDS = 100.0
APP: Any = object()


class Clock:
    """The monotonic clock of the module, which moves when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Broker:
    """Answers with ``positions``, or raises it."""

    def __init__(self) -> None:
        self.answer: dict[int, tuple[int, int]] | Exception = {}

    async def positions(self, _app: object) -> dict[int, tuple[int, int]]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(faust_app, "positions", broker.positions)
    return broker


async def test_records_that_are_not_read_end_the_worker_after_the_time(clock: Clock, broker: Broker) -> None:
    watched = WorkerProgress(STUCK_SECONDS)
    broker.answer = {0: (5, 9), 1: (2, 2)}
    await watched.check(APP, is_excused=False)
    assert watched.lag == 4
    clock.now = STUCK_SECONDS + 1
    with pytest.raises(StuckError, match=r"^no progress: partition 0: 4 records to read, committed offset 5 for 101 s"):
        await watched.check(APP, is_excused=False)


@pytest.mark.parametrize("error", [KafkaConnectionError("no broker"), TimeoutError(), OSError("no route")])
async def test_a_broker_that_does_not_answer_is_waited_for_and_the_time_begins_again_when_it_does(
    clock: Clock, broker: Broker, error: Exception
) -> None:
    watched = WorkerProgress(STUCK_SECONDS)
    broker.answer = {0: (5, 9)}
    await watched.check(APP, is_excused=False)
    broker.answer = error
    for clock.now in range(50, 500, 50):
        await watched.check(APP, is_excused=False)
        assert watched.waiting.is_waiting
    broker.answer = {0: (5, 9)}
    clock.now += STUCK_SECONDS
    await watched.check(APP, is_excused=False)
    assert not watched.waiting.is_waiting


async def test_a_broker_that_holds_the_answer_is_waited_for(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    async def hold(_app: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(consumer, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(faust_app, "positions", hold)
    watched = WorkerProgress(STUCK_SECONDS)
    await watched.check(APP, is_excused=False)
    assert "no answer" in watched.waiting.waiting_for()


async def test_the_time_begins_again_after_a_rebalance_and_after_waiting_elsewhere(
    clock: Clock, broker: Broker
) -> None:
    watched = WorkerProgress(STUCK_SECONDS)
    broker.answer = {0: (5, 9)}
    await watched.check(APP, is_excused=False)
    clock.now = 1_000
    await watched.check(None, is_excused=False)
    await watched.check(APP, is_excused=False)
    clock.now = 2_000
    await watched.check(APP, is_excused=True)
    clock.now = 2_000 + STUCK_SECONDS
    await watched.check(APP, is_excused=False)
