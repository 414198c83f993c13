"""Waiting for a store that is down: longer each time, never in step with other workers, said once."""

import asyncio
import logging
import random
import time

logger = logging.getLogger(__name__)


class Backoff:
    """The pauses of one store, called ``name`` in the log."""

    def __init__(self, name: str, longest_seconds: float, first_seconds: float = 0.1) -> None:
        self._name = name
        self._longest = longest_seconds
        self._first = first_seconds
        self._failures = 0
        self._since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Has the latest try failed?"""
        return self._failures > 0

    async def failed(self, cause: str) -> None:
        """A try failed; return when it is time for the next one."""
        if not self._failures:
            self._since = time.monotonic()
            logger.warning("%s: %.500s. Nothing is lost: trying again until it is done.", self._name, cause)
        else:
            logger.debug("%s: still failing: %.500s", self._name, cause)
        pause = min(self._first * 2 ** min(self._failures, 30), self._longest)
        self._failures += 1
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret depends on it

    def worked(self) -> None:
        """A try went well."""
        if self._failures:
            seconds = time.monotonic() - self._since
            logger.warning("%s works again after %.1f s and %d failed tries", self._name, seconds, self._failures)
        self._failures = 0
