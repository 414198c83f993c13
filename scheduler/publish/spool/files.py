"""Every system call of the spool and of the journal of binds; no other module of theirs touches a file.

Each call may fail at any time, with one of ``FAILURES``, and a test makes each of them fail
(``tests/unit/scheduler/publish/spool/test_system_calls_fail.py``). Files are private (0600) and never opened through a
link.
"""

import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FAILURES: Final = (OSError, MemoryError)
"""Errors of a call: no descriptor, memory or space is left, or the disk is broken."""
READ: Final = os.O_RDONLY
WRITE: Final = os.O_RDWR | os.O_CREAT
APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND
DRAFT: Final = ".draft"
"""Suffix of a draft that is to replace a file; one that a crash left can be discarded."""
_EMPTIED: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_MAX_PARTS: Final = 512
"""Below the number of parts that one `writev` takes (IOV_MAX, 1024 on Linux)."""


def explain(error: BaseException) -> str:
    """Explain one of ``FAILURES`` in words."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or "Cannot allocate memory"


def make_folder(folder: Path) -> None:
    """Make the folder unless it is there."""
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - Path.mkdir makes other calls


def list_names(folder: Path) -> list[str]:
    return os.listdir(folder)  # noqa: PTH208 - Path.iterdir hides some errors


def open_file(path: Path, flags: int) -> int:
    """Open a descriptor. flags: ``READ``, ``WRITE`` (at any position) or ``APPEND``."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def close(file: int | None) -> None:
    """Close the file, if there is one. Never raises: what has to be durable was synced before."""
    with suppress(*FAILURES):
        if file is not None:
            os.close(file)


def duplicate(file: int) -> int:
    return os.dup(file)


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    file = open_file(path, flags)
    try:
        yield file
    finally:
        close(file)


def try_lock(file: int) -> bool:
    """Try to take the lock for this descriptor; return whether it was free."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_there(path: Path) -> bool:
    try:
        measure(path)
    except FileNotFoundError:
        return False
    return True


def measure(file: Path | int) -> int:
    """Measure the file in bytes."""
    return os.stat(file).st_size  # noqa: PTH116 - of a descriptor too


def read(file: int, length: int, offset: int) -> bytes:
    """Read the bytes; fewer only at the end of the file."""
    data = os.pread(file, length, offset)
    # The kernel may return fewer: a broken place is an error of the next call, which must not pass for the file's end.
    while len(data) < length and (more := os.pread(file, length - len(data), offset + len(data))):
        data += more
    return data


def read_all(path: Path) -> bytes:
    with opened(path, READ) as file:
        return read(file, measure(file), 0)


def write(file: int, parts: Sequence[bytes], offset: int) -> None:
    """Write all parts, one behind the other. Where it fails, some of the bytes may be there."""
    for start in range(0, len(parts), _MAX_PARTS):
        run = parts[start : start + _MAX_PARTS]
        missing = sum(map(len, run)) - os.pwritev(file, run, offset)
        offset += sum(map(len, run))
        # The kernel may write less than it was given; the rest follows in further writes.
        remainder = memoryview(b"".join(run))[-missing:] if missing else memoryview(b"")
        while len(remainder):
            remainder = remainder[os.pwrite(file, remainder, offset - len(remainder)) :]


def append(file: int, text: bytes) -> None:
    """Append the text. A disk that fills up and takes only a part of it is an error too."""
    if os.write(file, text) < len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def truncate(file: Path | int, size: int) -> None:
    os.truncate(file, size)


def sync(file: int) -> None:
    """Make what was written durable; of the metadata, only the size of the file."""
    os.fdatasync(file)


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable: a sync of a file does not cover its name."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        close(handle)


def replace(path: Path, parts: Sequence[bytes]) -> None:
    """Give the file this content. After a crash it is the old one or the new one, never a mixture."""
    draft = path.with_suffix(DRAFT)
    try:
        with opened(draft, _EMPTIED) as file:
            write(file, parts, 0)
            # Before the rename: else a crash may leave the new name with no content.
            sync(file)
        os.rename(draft, path)  # noqa: PTH104 - a test makes this call fail
    except FAILURES:
        # It may take the last free space of the disk.
        discard(draft)
        raise
    # The file is the new one by now. Where this fails, a crash may bring the old one back.
    with suppress(*FAILURES):
        sync_folder(path.parent)


def remove(path: Path) -> None:
    os.unlink(path)  # noqa: PTH108 - a test makes this call fail


def discard(path: Path) -> None:
    """Remove the file, if that is possible now. Never raises."""
    with suppress(*FAILURES):
        remove(path)
