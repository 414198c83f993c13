"""Fair queue for OpenSearch: the caller that has waited longest goes first.

An answer may need several reads. In the order of the reads, the second read of a caller would wait for the first reads
of all later callers, and answers of three reads would take three times as long.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count


class Turns:
    """Queue with ``limit`` turns at a time."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    @asynccontextmanager
    async def turn(self, until: float) -> AsyncIterator[None]:
        """Wait for a turn and hold it. ``until``: when its caller gives up; the least comes first."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(until)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, until: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (until, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            # The turn came in the moment in which its caller gave up.
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
