"""The broker's clock as the witness of this machine's."""

import asyncio
from collections.abc import Sequence

import pytest

from runtime.kafka.broker_clock import BrokerClock
from runtime.kafka.record import RecordPosition
from schemas.codec.records import EncodedRecord

START = 1_795_230_000.0


class Machine:
    """A broker whose clock is right, and this machine's clock, which somebody sets."""

    def __init__(self) -> None:
        self.passed_seconds, self.own_error_seconds, self.broker_error_seconds = 0.0, 0.0, 0.0
        self.probe_seconds = 0.0
        self.topics: list[str] = []

    def read_own(self) -> float:
        return START + self.passed_seconds + self.own_error_seconds

    def read_steady(self) -> float:
        return 777.0 + self.passed_seconds

    async def send(self, outgoing: Sequence[EncodedRecord]) -> Sequence[RecordPosition]:
        self.topics += [record.topic for record in outgoing]
        self.passed_seconds += self.probe_seconds
        taken_at = START + self.passed_seconds + self.broker_error_seconds
        return [RecordPosition(0, 0, int(taken_at * 1000))]


def watch(machine: Machine) -> BrokerClock:
    return BrokerClock(machine, 0.01, read_own=machine.read_own, read_steady=machine.read_steady)


async def test_clocks_that_agree_hold_nothing_up() -> None:
    machine = Machine()
    machine.own_error_seconds = 59.0
    clock = watch(machine)
    await asyncio.wait_for(clock.wait_until_right(), 5)
    assert clock.ahead_seconds == pytest.approx(59, abs=0.01)
    assert clock.describe_difference() == ""
    assert machine.topics == ["schedulerlog.clock"]


@pytest.mark.parametrize(("error", "words"), [(172_800.0, "172800 s ahead of"), (-172_800.0, "172800 s behind")])
async def test_a_clock_that_is_set_while_the_process_runs_is_noticed_at_once(error: float, words: str) -> None:
    """N15: the clock is the trouble, not Kafka, and the remedy is beside it."""
    machine = Machine()
    clock = watch(machine)
    await clock.probe()
    machine.passed_seconds += 30
    machine.own_error_seconds = error
    assert len(machine.topics) == 1, "without another probe"
    assert words in clock.describe_difference()
    waiting = asyncio.create_task(clock.wait_until_right())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    assert clock.waiting.is_waiting
    assert "run a time service" in clock.waiting.describe_wait()
    machine.own_error_seconds = 0.0
    await asyncio.wait_for(waiting, 5)
    assert not clock.waiting.is_waiting


async def test_a_process_that_starts_with_a_wrong_clock_waits_before_it_judges() -> None:
    machine = Machine()
    machine.own_error_seconds = -86_400.0
    waiting = asyncio.create_task(watch(machine).wait_until_right())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    machine.own_error_seconds = 0.0
    await asyncio.wait_for(waiting, 5)


async def test_the_broker_may_have_been_the_wrong_one() -> None:
    machine = Machine()
    machine.broker_error_seconds = 7_200.0
    waiting = asyncio.create_task(watch(machine).wait_until_right())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    machine.broker_error_seconds = 0.0
    await asyncio.wait_for(waiting, 5)


async def test_a_slow_probe_changes_nothing() -> None:
    machine = Machine()
    clock = watch(machine)
    await clock.probe()
    machine.probe_seconds, machine.broker_error_seconds = 11.0, 500.0
    await clock.probe()
    assert clock.ahead_seconds == pytest.approx(0, abs=0.01)
