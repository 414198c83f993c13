"""The reader of placements takes no record by a wrong clock: it would reject a good one as of the future."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.placements.process import PlacementReader
from runtime.kafka.consumer import TopicPartition
from schemas.topics import ATTEMPTS

PARTITION = TopicPartition(ATTEMPTS.name, 0)


class SetClock:
    """Clock of a machine that somebody sets; waiting for the right time mends it."""

    def __init__(self) -> None:
        self.is_right = True

    async def wait_until_right(self) -> None:
        self.is_right = True


class Consumer:
    """Consumer whose records come after the clock was set; ends the reading after some batches."""

    def __init__(self, clock: SetClock, batches: int) -> None:
        self._clock, self._batches = clock, batches
        self.assignment = lambda: {PARTITION}

    async def getmany(self, **_: Any) -> dict[TopicPartition, list[Any]]:
        if not self._batches:
            raise asyncio.CancelledError
        self._batches -= 1
        self._clock.is_right = False
        return {PARTITION: [SimpleNamespace(offset=7, timestamp=1_772_600_000_000)]}

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        assert offsets == {PARTITION: 8}

    async def end_offsets(self, _: object) -> dict[TopicPartition, int]:
        return {}


class Writer:
    """Writer that notes whether the clock was right at each batch and audit; a batch takes long enough to set it."""

    def __init__(self, clock: SetClock) -> None:
        self._clock = clock
        self.taken: list[bool] = []
        self.audited: list[bool] = []

    async def take(self, _: Iterable[Any]) -> None:
        self.taken.append(self._clock.is_right)
        self._clock.is_right = False

    async def audit(self, _: Any) -> None:
        self.audited.append(self._clock.is_right)


async def test_records_and_audits_wait_until_a_clock_that_was_set_is_right_again() -> None:
    async def ask(question: Any) -> Any:
        return await question

    clock = SetClock()
    writer = Writer(clock)
    state: Any = SimpleNamespace(clock=clock, connection=SimpleNamespace(ask=ask), audited_until=None)
    with pytest.raises(asyncio.CancelledError):
        await PlacementReader(Consumer(clock, 3), writer, state).work()  # type: ignore[arg-type]
    assert writer.taken == [True] * 3
    assert writer.audited == [True]
