"""One process at a time in a folder. The system releases the lock when its holder ends, however that happens."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

POLL_SECONDS: Final = 0.2


@contextmanager
def file_lock(
    lock: Path, on_wait: Callable[[], None] = lambda: None, while_waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold an exclusive lock on the file ``lock``, which is created with its folder if it is missing.

    While another process holds it, ``on_wait`` is called once and ``while_waiting`` repeatedly. Raises OSError if the
    file cannot be created.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    # Not inherited: a server that is left running would otherwise hold the lock after we have ended.
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _try_lock(descriptor):
            on_wait()
            while not _try_lock(descriptor):
                while_waiting()
                time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)  # also releases the lock


def _try_lock(descriptor: int) -> bool:
    """Try to take the lock without waiting; whether we hold it now."""
    try:
        # Without blocking, so that the wait can be shown and interrupted.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
