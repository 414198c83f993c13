"""One process at a time in a folder, by a lock that the system takes back however its holder ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(lock: Path, while_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file, made with its folder where missing; ``while_waiting`` is called if somebody else holds it.

    Raises OSError when the file cannot be made.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            while_waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # also gives the lock back
