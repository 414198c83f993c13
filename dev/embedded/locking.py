"""One process at a time in a folder. The system releases the lock when its holder ends, however that happens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

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
    held = FileLock(lock)
    try:
        held.acquire(blocking=False)
    except Timeout:
        on_wait()

        def is_cancelled() -> bool:  # asked before each further try
            while_waiting()
            return False

        held.acquire(poll_interval=POLL_SECONDS, cancel_check=is_cancelled)
    try:
        yield
    finally:
        held.release()
