"""A process works until SIGTERM or SIGINT, or until one of its parts ends."""

import asyncio
import signal
from collections.abc import Collection, Coroutine
from typing import Any, Final

CANCEL_AGAIN_SECONDS: Final = 20.0
"""Longer than any part takes to end, and within the 30 seconds that Kubernetes gives a pod."""


def stop_event() -> asyncio.Event:
    """Create an event that SIGTERM and SIGINT set. Call it within the running loop."""
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
        # The cancelled ones end before the caller closes what they use.
        await end(tasks)


async def end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel them, and return when all have ended; what they raise meanwhile is left out."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        # Again after a while: a library's `asyncio.wait_for` loses a cancellation that comes while what it waits for
        # ends (Python 3.11), and the process would run on.
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_SECONDS)
    # An error while they end must not hide the first one.
    await asyncio.gather(*tasks, return_exceptions=True)
