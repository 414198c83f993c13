"""One process at a time in a folder, by a lock that the system takes back however its holder ends."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

POLL_SECONDS: Final = 0.2


@contextmanager
def one_at_a_time(
    lock: Path, waits: Callable[[], None] = lambda: None, still_waits: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock file, made with its folder where missing.

    If somebody else holds it, ``waits`` is called once and ``still_waits`` again and again. Raises OSError when the
    file cannot be made.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _is_taken(descriptor):
            waits()
            while not _is_taken(descriptor):
                still_waits()
                time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)  # also gives the lock back


def _is_taken(descriptor: int) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
