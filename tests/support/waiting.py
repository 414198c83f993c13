"""Waiting for what another thread, process or server does.

The time that is allowed is long: only a test that fails waits for its end, and a machine may be slow beside other
work. That something does *not* happen is never shown by waiting, but by something later that did happen.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
PATIENCE_SECONDS: Final = 120.0
PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 1.0
NOT_IN_TIME: Final = "it did not happen in time"


def until(read: Callable[[], T], is_right: Callable[[T], Any] = bool, seconds: float = PATIENCE_SECONDS) -> T:
    """Return what ``read`` gives as soon as it is right, or as it is when the time is up: for an assertion on it."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if is_right(answer := read()) or time.monotonic() >= deadline:
            return answer
        # Half of the time at most: to read a whole topic again and again takes the time of those who write it.
        time.sleep(max(PAUSE_SECONDS, min(time.monotonic() - began, LONGEST_PAUSE_SECONDS)))


def eventually(
    probe: Callable[[], T], otherwise: str | Callable[[], str] = NOT_IN_TIME, seconds: float = PATIENCE_SECONDS
) -> T:
    """Return the first true answer of ``probe``; fail with ``otherwise`` when none comes in time."""
    answer = until(probe, seconds=seconds)
    assert answer, otherwise() if callable(otherwise) else otherwise
    return answer


async def eventually_async(
    probe: Callable[[], T], otherwise: str | Callable[[], str] = NOT_IN_TIME, seconds: float = PATIENCE_SECONDS
) -> T:
    """Wait as ``eventually`` does, while the event loop runs on."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        assert time.monotonic() < deadline, otherwise() if callable(otherwise) else otherwise
        await asyncio.sleep(PAUSE_SECONDS / 5)
    return answer
