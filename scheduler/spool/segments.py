"""The files of a spool: `000000000001.spool`, … Each is only ever appended to, sealed when big, deleted when sent."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scheduler.spool import frames
from scheduler.spool.frames import Entry

SUFFIX: Final = ".spool"
_MOST_PARTS: Final = 512
"""Below the number of parts that one `writev` takes (IOV_MAX, 1024 on Linux)."""


class Segment:
    """One file. `size`: bytes of whole frames in it. `is_thin`: it is known to hold no detail that could be dropped."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.path = folder / f"{number:012}{SUFFIX}"
        self.size = self.path.stat().st_size if self.path.exists() else 0
        self.is_thin = False
        self._file: int | None = None

    def open(self) -> None:
        """Ready to append. Raises `OSError`."""
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        sync_folder(self.path.parent)

    @property
    def may_be_thinned(self) -> bool:
        return bool(self.size) and not self.is_thin

    def append(self, parts: Sequence[bytes]) -> None:
        """Write whole frames, all or nothing. Raises `OSError`; what was written by then is cut off again."""
        if self._file is None:
            self.open()
        try:
            written = self._write(parts)
        except OSError:
            self._cut()
            raise
        self.size += written
        self.is_thin = False

    def _write(self, parts: Sequence[bytes]) -> int:
        assert self._file is not None  # noqa: S101 - open() comes first
        written = 0
        for start in range(0, len(parts), _MOST_PARTS):
            run = parts[start : start + _MOST_PARTS]
            missing = sum(map(len, run)) - os.writev(self._file, run)
            written += sum(map(len, run))
            if missing:
                rest = memoryview(b"".join(run))[-missing:]
                while len(rest):
                    rest = rest[os.write(self._file, rest) :]
        return written

    def _cut(self) -> None:
        assert self._file is not None  # noqa: S101 - only a write that was begun is cut
        # Where not even this works, the reader skips the torn frame by its checksum.
        try:
            os.ftruncate(self._file, self.size)
        except OSError:
            self.size = os.fstat(self._file).st_size

    def sync(self) -> None:
        """Make what was appended durable. Raises `OSError`."""
        if self._file is not None:
            os.fdatasync(self._file)

    def handle(self) -> int | None:
        """A file descriptor of its own for another thread to sync and close; None when nothing was appended."""
        return None if self._file is None else os.dup(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes of whole frames from `offset`. Raises `OSError`."""
        length = max(min(length, self.size - offset), 0)
        if self._file is not None:
            return os.pread(self._file, length, offset)  # also when somebody has deleted the file's name
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def cut_torn_tail(self) -> int:
        """Cut off what follows the last intact frame; returns how many bytes that were. Raises `OSError`."""
        found = frames.scan(self.path.read_bytes(), is_end=True).found
        intact = found[-1][1] if found else 0
        torn, self.size = self.size - intact, intact
        if torn:
            os.truncate(self.path, intact)
        return torn

    def replace(self, keep_bytes: int, entries: Sequence[Entry]) -> None:
        """Write anew: the first `keep_bytes` as they are, then `entries`. Never half done. Raises `OSError`."""
        draft = self.path.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(self.read(0, keep_bytes))
            file.writelines(frames.frames(entries))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        draft.replace(self.path)
        sync_folder(self.path.parent)
        self.size = size

    def delete(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)


def existing(folder: Path) -> Iterator[Segment]:
    """The segments in a folder, oldest first."""
    numbers = sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}") if path.stem.isdigit())
    return (Segment(folder, number) for number in numbers)


def sync_folder(folder: Path) -> None:
    """Make names of new files durable. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
