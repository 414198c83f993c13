"""Work of a process until SIGTERM or SIGINT, or until one of its parts ends, and how often it collects garbage."""

import asyncio
import gc
import signal
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final, TypeVar

from runtime.refused_credentials import end_when_refused

T = TypeVar("T")
CANCEL_AGAIN_SECONDS: Final = 20.0
"""Pause before another cancellation: longer than any part takes to end, and within the 30 seconds of Kubernetes."""


def create_stop_event() -> asyncio.Event:
    """Create an event that SIGTERM and SIGINT set. Call it within the running loop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A handler of the loop, not of `signal`: it wakes a loop that waits for a socket.
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def collect_garbage_seldom() -> None:
    """Leave out what is imported, and search the rest less often than Python does by default.

    Records and the models of an answer live briefly and have no reference cycles: with the default thresholds the
    collector would search them again and again, and find nothing.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def run_until_stopped(*works: Coroutine[Any, Any, object]) -> None:
    """Run them side by side until SIGTERM or SIGINT, or until one ends. Raises the error of the one that ended, and
    ``FixedCredentialsError``."""
    collect_garbage_seldom()
    await run_until_first_ends(*works, end_when_refused(), create_stop_event().wait())


async def run_until_first_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Run them side by side until the first ends, and cancel the others. Raises the error of the first."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        # The cancelled tasks end before the caller closes the objects that they use.
        await end(tasks)


async def run_until_cancelled(work: Coroutine[Any, Any, T], stop: Callable[[], None], limit_seconds: float) -> T:
    """Run work that ends well only by ``stop``, or by itself. A cancellation calls it, and lets the work end within the
    limit.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            stop()
            await asyncio.wait([task], timeout=limit_seconds)
        await end([task])
        raise


async def end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel the tasks, and return when all have ended; ignore the errors that they raise meanwhile."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        # Again after a while: a library's `asyncio.wait_for` loses a cancellation that arrives while its awaitable ends
        # (Python 3.11), and the process would run on.
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_SECONDS)
    # An error while they end must not hide the first one.
    await asyncio.gather(*tasks, return_exceptions=True)
