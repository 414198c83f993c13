"""A process works until SIGTERM or SIGINT, or until one of its parts ends."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set. To be called within the running loop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A handler of the loop and not of `signal`: it wakes a loop that waits for a socket.
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def until_stopped(*works: Coroutine[Any, Any, object]) -> None:
    """Run them side by side until SIGTERM or SIGINT, or until one ends. Raises what that one raised."""
    await first_of(*works, stop_event().wait())


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Run them side by side until the first ends; the others are cancelled. Raises what the first raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        # The cancelled ones end before the caller closes what they use. An error while they end must not hide the first
        # one.
        await asyncio.gather(*tasks, return_exceptions=True)
