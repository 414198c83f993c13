"""Items that wait for the budget, and for how long."""

import asyncio

from pipeline.worker.write_queue import ByteBudget


async def start_acquiring(budget: ByteBudget, size: int) -> asyncio.Task[None]:
    """Start a task that acquires ``size`` bytes, and give it the time to do so if they are free."""
    task = asyncio.create_task(budget.acquire(size))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_an_item_over_the_limit_waits_until_enough_is_released() -> None:
    budget = ByteBudget(10)
    await budget.acquire(6)
    second = await start_acquiring(budget, 5)
    assert not second.done()
    await budget.release(1)
    await asyncio.wait_for(second, 5)
    assert budget.used_bytes == 10


async def test_an_item_larger_than_the_budget_goes_alone() -> None:
    budget = ByteBudget(10)
    await budget.acquire(1)
    giant = await start_acquiring(budget, 1_000)
    assert not giant.done()
    await budget.release(1)
    await asyncio.wait_for(giant, 5)
    assert not (await start_acquiring(budget, 1)).done()


async def test_a_cancelled_waiter_uses_nothing() -> None:
    budget = ByteBudget(10)
    await budget.acquire(10)
    waiting = await start_acquiring(budget, 5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await budget.release(10)
    await asyncio.wait_for(budget.acquire(10), 5)
    assert budget.used_bytes == 10
