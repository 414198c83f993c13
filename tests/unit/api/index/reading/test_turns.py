"""Turns at OpenSearch: bounded, and the caller who has waited longest comes first."""

import asyncio
from collections.abc import Callable

import pytest

from api.index.reading.turns import Turns


async def let_tasks_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Callers:
    def __init__(self, turns: Turns) -> None:
        self.turns, self.begun = turns, list[str]()
        self.ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def come(self, name: str, until: float) -> None:
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._ask(name, until))

    async def _ask(self, name: str, until: float) -> None:
        async with self.turns.turn(until):
            self.begun.append(name)
            await self.ends[name].wait()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await let_tasks_run()


@pytest.fixture
def callers() -> Callable[[int], Callers]:
    return lambda limit: Callers(Turns(limit))


async def test_so_many_ask_at_a_time_and_the_next_one_is_who_has_waited_longest(
    callers: Callable[[int], Callers],
) -> None:
    waiting_callers = callers(2)
    for name, until in {"a": 9.0, "b": 8.0, "late": 7.0, "later": 7.0, "early": 1.0}.items():
        waiting_callers.come(name, until)
        await let_tasks_run()
    assert waiting_callers.begun == ["a", "b"]
    for name in ("a", "b", "early", "late", "later"):
        await waiting_callers.end(name)
    assert waiting_callers.begun == ["a", "b", "early", "late", "later"]


async def test_who_gives_up_takes_no_turn(callers: Callable[[int], Callers]) -> None:
    waiting_callers = callers(1)
    for name in ("a", "gives up", "b", "c"):
        waiting_callers.come(name, 1)
    await let_tasks_run()
    waiting_callers.tasks["gives up"].cancel()
    await let_tasks_run()
    # In the moment in which its turn came.
    waiting_callers.ends["a"].set()
    await asyncio.sleep(0)
    assert waiting_callers.tasks["a"].done()
    waiting_callers.tasks["b"].cancel()
    await let_tasks_run()
    assert waiting_callers.begun == ["a", "c"]
    await waiting_callers.end("c")
    waiting_callers.come("d", 1)
    await let_tasks_run()
    assert waiting_callers.begun == ["a", "c", "d"]
