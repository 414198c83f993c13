"""A folder for what a process needs only while it runs.

All of them lie in one folder, ``schedulerlog-<user id>`` in the system's temporary folder. A process that is killed
leaves its folder behind; the next process that starts removes it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

LOCK: Final = "lock"


def locate_scratch_root() -> Path:
    """Return the folder that holds the folders of all our processes."""
    # By user: a folder that another user made could not be written to.
    return Path(tempfile.gettempdir()) / f"schedulerlog-{os.getuid()}"


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """A new, empty folder for this process; raises ``OSError`` where the temporary folder can't be written."""
    locate_scratch_root().mkdir(mode=0o700, exist_ok=True)
    with _locked(locate_scratch_root() / LOCK):
        _remove_unlocked()
        # Still under the lock of the root: another process would otherwise see a folder whose lock is not taken yet.
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=locate_scratch_root()))
        held = ExitStack()
        # The kernel releases the lock when the process ends, however it ends: a process id may belong to another
        # process by then, or to another container.
        held.enter_context(_locked(folder / LOCK))
    # The lock is released after the folder is removed: two processes would remove it at the same time otherwise.
    with held:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind() -> None:
    """Remove the folders of processes that have ended."""
    if locate_scratch_root().is_dir():
        with _locked(locate_scratch_root() / LOCK):
            _remove_unlocked()


def _remove_unlocked() -> None:
    for lock in locate_scratch_root().glob(f"*/{LOCK}"):
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its process runs.
            except BlockingIOError:
                continue
            shutil.rmtree(lock.parent, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
