"""Waiting for what another thread, process or server does.

The time that is allowed is long: only a test that fails waits for its end, and a machine may be slow beside other
work. That something does *not* happen is never shown by waiting, but by something later that did happen.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
PATIENCE_SECONDS: Final = 120.0
PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 1.0
NOT_IN_TIME: Final = "it did not happen in time"
MAX_SHOWN: Final = 4_000
"""Characters of an answer in a failure."""


def until(read: Callable[[], T], is_right: Callable[[T], Any] = bool, seconds: float = PATIENCE_SECONDS) -> T:
    """Return what ``read`` gives as soon as it is right; fail with what it gave last when the time is up."""
    answer, is_in_time = _read_again(read, is_right, seconds)
    assert is_in_time, f"{NOT_IN_TIME}; the last answer: {repr(answer)[:MAX_SHOWN]}"
    return answer


def eventually(
    probe: Callable[[], T], otherwise: str | Callable[[], str] = NOT_IN_TIME, seconds: float = PATIENCE_SECONDS
) -> T:
    """Return the first true answer of ``probe``; fail with ``otherwise`` when none comes in time."""
    answer, is_in_time = _read_again(probe, bool, seconds)
    assert is_in_time, otherwise() if callable(otherwise) else otherwise
    return answer


def await_end(
    read: Callable[[], T], is_ended: Callable[[T], Any], seconds: float = PATIENCE_SECONDS
) -> tuple[float, T]:
    """Read until an answer shows the end; return when the read before it began (``time.monotonic``, -inf if there was
    none), and the answer.

    A server decides after a read began: however slow the machine is, no read that began after the end is answered as
    before.
    """
    begins: list[float] = []

    def read_and_note() -> T:
        begins.append(time.monotonic())
        return read()

    answer = until(read_and_note, is_ended, seconds)
    return begins[-2] if len(begins) > 1 else -math.inf, answer


def _read_again(read: Callable[[], T], is_right: Callable[[T], Any], seconds: float) -> tuple[T, bool]:
    """Return the first right answer, or the last one when the time is up, and whether it is right."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if is_right(answer := read()):
            return answer, True
        if time.monotonic() >= deadline:
            return answer, False
        # Half of the time at most: to read a whole topic again and again takes the time of those who write it.
        time.sleep(max(PAUSE_SECONDS, min(time.monotonic() - began, LONGEST_PAUSE_SECONDS)))


async def eventually_async(
    probe: Callable[[], T], otherwise: str | Callable[[], str] = NOT_IN_TIME, seconds: float = PATIENCE_SECONDS
) -> T:
    """Wait as ``eventually`` does, while the event loop runs on."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        assert time.monotonic() < deadline, otherwise() if callable(otherwise) else otherwise
        await asyncio.sleep(PAUSE_SECONDS / 5)
    return answer
