"""How much may be read and not yet written."""

import asyncio


class ByteBudget:
    """Counts bytes against a bound that all writers share: one that has much to do takes what others leave."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._left = asyncio.Condition()
        self._waiting = 0
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Does anybody wait?"""
        return self._waiting > 0

    async def enter(self, size: int) -> None:
        """Return when there is room; what is larger than all of it waits until it is alone."""
        async with self._left:
            self._waiting += 1
            try:
                await self._left.wait_for(lambda: not self.bytes or self.bytes + size <= self._most)
            finally:
                self._waiting -= 1
            self.bytes += size

    async def leave(self, size: int) -> None:
        async with self._left:
            self.bytes -= size
            self._left.notify_all()
