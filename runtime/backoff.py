"""Pauses between tries, longer each time and never in step with other processes, and limits of requests per second."""

import asyncio
import logging
import random
import time
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final, Protocol

logger = logging.getLogger(__name__)


def draw_backoff_seconds(rng: Random, first_seconds: float = 0.2, max_seconds: float = 30.0) -> Iterator[float]:
    """Draw waits in seconds without end: each step doubles up to the longest, and each wait lies in the upper half of
    its step.

    The chance keeps the many clients of a service that comes back from coming all at once.
    """
    step = min(first_seconds, max_seconds)
    while True:
        # Without the lower half, because a draw near 0 would be a retry without a pause.
        yield step * (0.5 + rng.random() / 2)
        step = min(step * 2, max_seconds)


class Waiting(Protocol):
    """Something that may have to wait for a service."""

    def describe_wait(self) -> str:
        """Describe the wait; empty where there is none."""
        ...


def describe_first_wait(waits: Iterable[Waiting], otherwise: str = "") -> str:
    """Describe the first of the waits, as a check of readiness; ``otherwise`` where nothing waits."""
    return next(filter(None, (wait.describe_wait() for wait in waits)), otherwise)


REMIND_SECONDS: Final = 60.0
"""Seconds between two log lines that repeat the awaited service."""


class Backoff:
    """Wait for one store, called ``name`` in the log: a line when it fails, one each minute, one when it works."""

    def __init__(self, name: str, longest_seconds: float, first_seconds: float = 0.1) -> None:
        self._name = name
        self._longest = longest_seconds
        self._first = first_seconds
        self._failures = 0
        self._failing_since = 0.0
        self._logged_at = 0.0
        self._cause = ""
        self._pauses: Iterator[float] = iter(())

    @property
    def is_waiting(self) -> bool:
        """Tell whether the latest try failed."""
        return self._failures > 0

    @property
    def waiting_seconds(self) -> float:
        """Seconds since the first failure; 0 while the service works."""
        return time.monotonic() - self._failing_since if self._failures else 0.0

    def describe_wait(self) -> str:
        """Describe the awaited service, the time that it has been failing and the cause, as a check of readiness; empty
        while it works."""
        if not self._failures:
            return ""
        return f"waiting for {self._name} for {self.waiting_seconds:.0f} s: {self._cause:.500}"

    async def wait_after_failure(self, cause: str) -> None:
        """Wait until it is time for the next try, after noting that this one failed."""
        self.note(cause)
        await asyncio.sleep(next(self._pauses))

    def note(self, cause: str) -> None:
        """Note that a try failed, or has been without an answer for long."""
        now = time.monotonic()
        # Errors of a time limit have no words of their own: "TimeoutError: ".
        cause = cause.rstrip(" :.") or "no answer, and no cause was given"
        if cause == "TimeoutError":
            cause = "no answer within the time limit (TimeoutError)"
        self._cause = cause
        if not self._failures:
            self._failing_since = self._logged_at = now
            # New for each outage, so that the first retry after a short one is quick again.
            self._pauses = draw_backoff_seconds(random.Random(), self._first, self._longest)  # noqa: S311 - no secret depends on it
            logger.warning("%s: %.500s. Nothing is lost: trying again until it works.", self._name, cause)
        elif now - self._logged_at >= REMIND_SECONDS:
            self._logged_at = now
            logger.warning("still %s. Trying again.", self.describe_wait())
        else:
            # Not a warning: an outage of an hour would be hundreds of lines that say the same.
            logger.debug("%s: still failing: %.500s", self._name, cause)
        self._failures += 1

    def note_success(self) -> None:
        """Note that a try succeeded: the next failure begins with a short pause again."""
        if self._failures:
            seconds = time.monotonic() - self._failing_since
            logger.warning("%s works again after %.1f s and %d failed tries", self._name, seconds, self._failures)
        self._failures = 0


class RateLimiter:
    """Limiter of `qps` requests a second, and up to `burst` at once after a pause. `qps` 0 means no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._free, self._refilled_at = float(self._burst), 0.0

    def delay_seconds(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it; `now` must not go back."""
        if not self._qps:
            return 0.0
        self._free = min(self._free + (now - self._refilled_at) * self._qps, self._burst)
        self._refilled_at = now
        # The bucket may go below zero, so that each caller in the queue gets a later moment.
        self._free -= 1
        return max(-self._free / self._qps, 0.0)
