"""Who waits for room, and for how long."""

import asyncio

from pipeline.worker.byte_budget import ByteBudget


async def entered(room: ByteBudget, size: int) -> asyncio.Task[None]:
    """The task that waits; it has had the time to come in if there is room."""
    task = asyncio.create_task(room.enter(size))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_what_is_over_the_bound_waits_until_enough_has_left() -> None:
    room = ByteBudget(10)
    await room.enter(6)
    second = await entered(room, 5)
    assert not second.done()
    await room.leave(1)
    await asyncio.wait_for(second, 5)
    assert room.bytes == 10


async def test_what_is_larger_than_the_bound_comes_in_alone() -> None:
    room = ByteBudget(10)
    await room.enter(1)
    giant = await entered(room, 1_000)
    assert not giant.done()
    await room.leave(1)
    await asyncio.wait_for(giant, 5)
    assert not (await entered(room, 1)).done()


async def test_who_gives_up_waiting_takes_no_room() -> None:
    room = ByteBudget(10)
    await room.enter(10)
    waiting = await entered(room, 5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await room.leave(10)
    await asyncio.wait_for(room.enter(10), 5)
    assert room.bytes == 10
