"""Group commit: callers that wait for the disk at the same time share one fsync."""

import asyncio
from collections import deque
from collections.abc import Callable

from scheduler.publish.spool import files


class GroupCommit:
    """Every call comes from one thread.

    handle: returns a file descriptor to sync and close, None where there is nothing to sync. sync_here: syncs without
    another descriptor or thread. failed: is called with the error of a disk that can't be written.
    """

    def __init__(
        self, handle: Callable[[], int | None], sync_here: Callable[[], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._handle, self._sync_here, self._failed = handle, sync_here, failed
        self._appended = self._durable = 0
        self._syncing: asyncio.Task[None] | None = None

    def note_append(self) -> None:
        """Note that one more append is to become durable."""
        self._appended += 1

    @property
    def is_behind(self) -> bool:
        return self._durable < self._appended

    async def flush(self) -> None:
        """Return when everything appended so far is durable, or the disk has failed."""
        mine = self._appended
        # A sync that has begun may not cover our append, so a second one may have to follow.
        while self._durable < mine:
            if self._syncing is None or self._syncing.done():
                self._syncing = asyncio.create_task(self.sync())
            # A client that gives up must not cancel the sync that others wait for.
            await asyncio.shield(self._syncing)

    async def sync(self) -> None:
        """Sync all appends so far with one fsync, in a thread: the event loop answers other calls meanwhile."""
        # Read before the thread starts: what is appended during the sync may not be covered by it.
        upto = self._appended
        try:
            await self._sync_in_thread()
        except files.FAILURES as error:
            self._failed(error)
        # After a failure too: no answer waits for a broken disk; `failed` has reported it.
        self._durable = max(self._durable, upto)

    async def _sync_in_thread(self) -> None:
        try:
            handle = self._handle()
        except files.FAILURES:
            # No descriptor is left: every other answer waits for this sync, but what is answered is durable.
            self._sync_here()
            return
        if handle is None:
            return
        waiting = deque([handle])
        try:
            await asyncio.to_thread(_sync_and_close, waiting)
        except RuntimeError:
            # No thread can be started. The pool keeps the call nevertheless, and makes it when it has one: by then the
            # number may be that of another file.
            _sync_and_close(waiting)


def _sync_and_close(waiting: deque[int]) -> None:
    """Take the descriptor out and sync it; nothing where another call has taken it."""
    if waiting:
        handle = waiting.popleft()
        try:
            files.sync(handle)
        finally:
            files.close(handle)
