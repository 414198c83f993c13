import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from pipeline.worker import faust_app, progress
from pipeline.worker.progress import StuckError, Watchdog, WorkerProgress, count_lag
from runtime.kafka import consumer


def test_lag_counts_the_records_that_are_not_committed() -> None:
    assert count_lag({0: (5, 9), 1: (3, 3), 2: (7, 0)}) == 4


def test_a_committed_offset_that_does_not_move_while_records_wait_is_reported_after_the_time() -> None:
    watchdog = Watchdog(stuck_after_seconds=10)
    assert watchdog.check({0: (5, 9)}, 0.0, is_excused=False) == ""
    assert watchdog.check({0: (5, 9)}, 10.0, is_excused=False) == ""
    problem = watchdog.check({0: (5, 12)}, 11.0, is_excused=False)
    assert problem == "partition 0: 7 records to read, committed offset 5 for 11 s"


def test_a_moving_offset_an_empty_partition_and_a_store_that_is_down_are_not_reported() -> None:
    watchdog = Watchdog(stuck_after_seconds=10)
    for now in range(0, 100, 5):
        assert watchdog.check({0: (now, 1_000), 1: (7, 7)}, float(now), is_excused=False) == ""
    for now in range(100, 200, 5):
        assert watchdog.check({0: (3, 9)}, float(now), is_excused=True) == ""
    assert watchdog.check({0: (3, 9)}, 204.0, is_excused=False) == ""


def test_a_partition_that_another_worker_has_now_is_forgotten() -> None:
    watchdog = Watchdog(stuck_after_seconds=10)
    watchdog.check({0: (5, 9)}, 0.0, is_excused=False)
    assert watchdog.check({}, 50.0, is_excused=False) == ""
    assert watchdog.check({0: (5, 9)}, 60.0, is_excused=False) == ""


STUCK_SECONDS = 100.0
APP: Any = object()


class Clock:
    """The monotonic clock of the module, which moves when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Broker:
    """Answers with ``answer``, or raises it; with ``group`` for all partitions."""

    def __init__(self) -> None:
        self.answer: dict[int, tuple[int, int]] | Exception = {}
        self.group: dict[int, tuple[int, int]] = {}
        self.asked_about_group = 0

    async def read_positions(self, _app: object) -> dict[int, tuple[int, int]]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def read_group(self, _app: object) -> dict[int, tuple[int, int]]:
        self.asked_about_group += 1
        return self.group


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(faust_app, "fetch_positions", broker.read_positions)
    monkeypatch.setattr(faust_app, "fetch_group_positions", broker.read_group)
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
    monkeypatch.setattr(faust_app, "fetch_positions", hold)
    watched = WorkerProgress(STUCK_SECONDS)
    await watched.check(APP, is_excused=False)
    assert "no answer" in watched.waiting.describe_wait()


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


async def test_the_lag_of_the_group_counts_partitions_that_no_worker_reads(clock: Clock, broker: Broker) -> None:
    watched = WorkerProgress(STUCK_SECONDS)
    broker.answer, broker.group = {0: (5, 9)}, {0: (5, 9), 1: (0, 70)}
    await watched.check(APP, is_excused=False)
    assert (watched.lag, watched.group_lag) == (4, 74)


async def test_the_broker_is_asked_about_all_partitions_every_ten_seconds(clock: Clock, broker: Broker) -> None:
    watched = WorkerProgress(STUCK_SECONDS)
    for clock.now in range(31):
        await watched.check(APP, is_excused=False)
    assert broker.asked_about_group == 4
