"""A bound on the bytes that have been read and not yet written."""

import asyncio


class ByteBudget:
    """Counts bytes against a limit that all writers share: a writer with much to do uses what the others leave free."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._released = asyncio.Condition()
        self._waiting = 0
        self.used_bytes = 0

    @property
    def has_waiters(self) -> bool:
        """Is anything waiting for bytes to be released?"""
        return self._waiting > 0

    async def acquire(self, size: int) -> None:
        """Reserve ``size`` bytes; waits until they are free."""
        async with self._released:
            self._waiting += 1
            try:
                # An item larger than the whole budget would never fit beside others: it goes alone.
                await self._released.wait_for(lambda: not self.used_bytes or self.used_bytes + size <= self._max_bytes)
            finally:
                self._waiting -= 1
            # Still under the lock: between the wait and the sum no other waiter may take the same bytes.
            self.used_bytes += size

    async def release(self, size: int) -> None:
        """Give back what was acquired."""
        async with self._released:
            self.used_bytes -= size
            # All and not one: the first in the queue may need more than was released, and a smaller one behind it fits.
            self._released.notify_all()
