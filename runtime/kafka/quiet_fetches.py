"""Fewer fetches while nothing arrives: brokers hold a fetch that finds no record, and answer it at the first one.

aiokafka asks again as soon as a fetch has come back empty: with its half second, a dozen consumers at rest took half of
the CPU that a small installation needs. A longer hold has a price: until it ends, the client asks this broker for no
other partitions, such as those that it was just given or has just handed out. So it grows with the time for which
nothing has arrived, and the first record makes it short again. This module replaces aiokafka's class for all consumers
of this process; its version is pinned, and tests/contract/test_library_internals.py names what to read again when the
pin moves.
"""

import time
from typing import Any, Final

import aiokafka.consumer.consumer
from aiokafka.consumer.fetcher import Fetcher

LONGEST: Final = 4
"""Longest hold, as a multiple of the consumer's own: 2 s as a rule. Questions about the ends of partitions wait behind
a fetch, and some of them give up after 5 s."""

LOOK_SECONDS: Final = 1.0
"""Pause after which the client looks for something to fetch although nothing has happened; everything that makes a
fetch possible wakes it, so its 0.2 s find nothing."""


class QuietFetcher(Fetcher):  # type: ignore[misc]
    """Fetcher whose fetches are held for as long as nothing has arrived before, within bounds."""

    _fetch_max_wait_ms: int
    """Milliseconds for which a broker may hold the next fetch."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"fetcher_timeout": LOOK_SECONDS})
        self._shortest_ms = self._fetch_max_wait_ms
        self._arrived_at = time.monotonic()
        self._assignment: Any = None

    async def _proc_fetch_request(self, assignment: Any, node_id: int, request: Any) -> Any:
        has_news = await super()._proc_fetch_request(assignment, node_id, request)
        now = time.monotonic()
        if has_news or assignment is not self._assignment:
            self._arrived_at, self._assignment = now, assignment
        quiet_ms = int((now - self._arrived_at) * 1_000)
        self._fetch_max_wait_ms = min(max(quiet_ms, self._shortest_ms), LONGEST * self._shortest_ms)
        return has_news


aiokafka.consumer.consumer.Fetcher = QuietFetcher
