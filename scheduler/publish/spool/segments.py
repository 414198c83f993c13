"""The files of a spool: `000000000001.spool`, … Each is only ever appended to, and sealed when it is big.

A file may begin as a spare with bytes of earlier lives in it; what is appended then lies over those, and ends in `END`.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scheduler.publish.spool import frames
from scheduler.publish.spool.frames import Entry

SUFFIX: Final = ".spool"
_MAX_PARTS: Final = 512
"""Below the number of parts that one `writev` takes (IOV_MAX, 1024 on Linux)."""


class Segment:
    """One file. `size`: bytes of whole frames in it. `is_thin`: it is known to hold no detail that could be dropped.

    `stale_bytes`: behind those, what an earlier life has left.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.path = folder / f"{number:012}{SUFFIX}"
        self.size = self.path.stat().st_size if self.path.exists() else 0
        self._length = self.size
        self.is_thin = False
        self._file: int | None = None

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def stale_bytes(self) -> int:
        return max(self._length - self.size, 0)

    def open(self) -> None:
        """Ready to append behind `size`; what the file holds besides is stale. Raises `OSError`."""
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._length = os.fstat(self._file).st_size
        sync_folder(self.path.parent)

    @property
    def may_be_thinned(self) -> bool:
        return bool(self.size) and not self.is_thin

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries or none. Raises `OSError`; what was written by then is cut off again."""
        if self._file is None:
            self.open()
        assert self._file is not None  # noqa: S101 - open() has set it
        parts = frames.frames(entries, self.number)
        behind = self.size + sum(map(len, parts))
        try:
            self._write(self._file, [*parts, frames.END[: max(self._length - behind, 0)]])
        except OSError:
            self._cut(self._file)
            raise
        self.size, self._length = behind, max(behind, self._length)
        self.is_thin = False

    def _write(self, file: int, parts: Sequence[bytes]) -> None:
        place = self.size
        for start in range(0, len(parts), _MAX_PARTS):
            run = parts[start : start + _MAX_PARTS]
            missing = sum(map(len, run)) - os.pwritev(file, run, place)
            place += sum(map(len, run))
            rest = memoryview(b"".join(run))[-missing:] if missing else memoryview(b"")
            while len(rest):
                rest = rest[os.pwrite(file, rest, place - len(rest)) :]

    def _cut(self, file: int) -> None:
        # Where not even this works, the next append lies over what is torn.
        try:
            self.trim()
        except OSError:
            self._length = os.fstat(file).st_size

    def trim(self) -> None:
        """Cut off what an earlier life has left. Raises `OSError`."""
        os.truncate(self.path if self._file is None else self._file, self.size)
        self._length = self.size

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
        """Cut off what follows the last intact frame; returns how many bytes that were, 0 where `END` comes first.

        Raises `OSError`.
        """
        data = self.path.read_bytes()
        found = frames.scan(data, self.number, is_end=True).found
        self.size = found[-1][1] if found else 0
        self._length = len(data)
        torn = 0 if data[self.size : self.size + len(frames.END)] == frames.END else self.stale_bytes
        if self.stale_bytes:
            self.trim()
        return torn

    def replace(self, keep_bytes: int, entries: Sequence[Entry]) -> None:
        """Write anew: the first `keep_bytes` as they are, then `entries`. Never half done. Raises `OSError`."""
        draft = self.path.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(self.read(0, keep_bytes))
            file.writelines(frames.frames(entries, self.number))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        draft.replace(self.path)
        sync_folder(self.path.parent)
        self.size = self._length = size

    def delete(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def scan(self, start: int) -> frames.Scan:
        """What lies behind `start`. Raises `OSError`."""
        return frames.scan(self.read(start, self.size), self.number, is_end=True)


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
