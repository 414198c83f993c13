"""Pauses between tries: longer each time, and never in step with other processes."""

import asyncio
import logging
import random
import time
from collections.abc import Iterator
from random import Random

logger = logging.getLogger(__name__)


def backoff_seconds(rng: Random, first_seconds: float = 0.2, max_seconds: float = 30.0) -> Iterator[float]:
    """Seconds, without end: doubled each time up to the longest, each drawn from the upper half of its step.

    Drawn, so that the many clients of a service that comes back do not all come at once.
    """
    step = min(first_seconds, max_seconds)
    while True:
        # The lower half is left out: a draw near 0 would be a retry without a pause.
        yield step * (0.5 + rng.random() / 2)
        step = min(step * 2, max_seconds)


class Backoff:
    """Waiting for one store, called ``name`` in the log: one line when it fails, one when it works again."""

    def __init__(self, name: str, longest_seconds: float, first_seconds: float = 0.1) -> None:
        self._name = name
        self._longest = longest_seconds
        self._first = first_seconds
        self._failures = 0
        self._failing_since = 0.0
        self._pauses: Iterator[float] = iter(())

    @property
    def is_waiting(self) -> bool:
        """Has the latest try failed?"""
        return self._failures > 0

    async def failed(self, cause: str) -> None:
        """Note that a try failed; return when it is time for the next one."""
        if not self._failures:
            self._failing_since = time.monotonic()
            # New for each outage, so that the first retry after a short one is quick again.
            self._pauses = backoff_seconds(random.Random(), self._first, self._longest)  # noqa: S311 - no secret depends on it
            logger.warning("%s: %.500s. Nothing is lost: trying again until it works.", self._name, cause)
        else:
            # Not a warning: an outage of an hour would be hundreds of lines that say the same.
            logger.debug("%s: still failing: %.500s", self._name, cause)
        self._failures += 1
        await asyncio.sleep(next(self._pauses))

    def worked(self) -> None:
        """Note that a try succeeded: the next failure begins with a short pause again."""
        if self._failures:
            seconds = time.monotonic() - self._failing_since
            logger.warning("%s works again after %.1f s and %d failed tries", self._name, seconds, self._failures)
        self._failures = 0
