"""The files of a spool: `000000000001.spool`, … Each is only appended to, and sealed when it is large."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from process.private_files import open_private
from scheduler.publish.spool import frames
from scheduler.publish.spool.frames import Entry

SUFFIX: Final = ".spool"
_MAX_PARTS: Final = 512
"""Below the number of parts that one `writev` takes (IOV_MAX, 1024 on Linux)."""
_PROBE: Final = bytes(4096)
"""A block of most file systems."""


class Segment:
    """One file. size: bytes of whole frames in it. is_thin: it is known to hold no device detail."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.path = folder / f"{number:012}{SUFFIX}"
        self.size = self.path.stat().st_size if self.path.exists() else 0
        self.is_thin = False
        self._file: int | None = None

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def may_be_thinned(self) -> bool:
        return bool(self.size) and not self.is_thin

    def open(self) -> None:
        """Make the file ready for appends, durable under its name. Raises `OSError`."""
        # Without O_APPEND: with it Linux ignores the offset of `pwritev`, and torn bytes could not be overwritten.
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            sync_folder(self.path.parent)
        except OSError:
            # Each further try would leave another descriptor open.
            os.close(file)
            raise
        self._file = file

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries or none. Raises `OSError`; what was written by then is cut off again."""
        if self._file is None:
            self.open()
        assert self._file is not None  # noqa: S101 - open() has set it
        parts = frames.frames(entries)
        try:
            self._write(self._file, parts)
        except OSError:
            # Where truncating fails too, the next append overwrites the torn bytes: it writes at `size`.
            with contextlib.suppress(OSError):
                os.truncate(self._file, self.size)
            raise
        self.size += sum(map(len, parts))
        self.is_thin = False

    def probe(self) -> None:
        """Raises `OSError` where no more can be written now; nothing of the probe remains."""
        if self._file is None:
            self.open()
        assert self._file is not None  # noqa: S101 - open() has set it
        try:
            self._write(self._file, [_PROBE])
        finally:
            os.truncate(self._file, self.size)

    def _write(self, file: int, parts: Sequence[bytes]) -> None:
        offset = self.size
        for start in range(0, len(parts), _MAX_PARTS):
            run = parts[start : start + _MAX_PARTS]
            missing = sum(map(len, run)) - os.pwritev(file, run, offset)
            offset += sum(map(len, run))
            # The kernel may write less than it was given; the rest follows in further writes.
            rest = memoryview(b"".join(run))[-missing:] if missing else memoryview(b"")
            while len(rest):
                rest = rest[os.pwrite(file, rest, offset - len(rest)) :]

    def sync(self) -> None:
        """Make what was appended durable. Raises `OSError`."""
        if self._file is not None:
            os.fdatasync(self._file)

    def duplicate_handle(self) -> int | None:
        """A file descriptor of its own for another thread to sync and close; None where nothing was appended."""
        return None if self._file is None else os.dup(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes of whole frames from `offset`. Raises `OSError`."""
        length = max(min(length, self.size - offset), 0)
        if self._file is not None:
            return os.pread(self._file, length, offset)  # works also after the file's name was deleted
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def cut_torn_tail(self) -> int:
        """Cut off what follows the last intact frame; returns how many bytes that were. Raises `OSError`."""
        data = self.path.read_bytes()
        found = frames.scan(data, is_end=True).found
        self.size = found[-1][1] if found else 0
        if torn := len(data) - self.size:
            os.truncate(self.path, self.size)
        return torn

    def replace(self, keep_bytes: int, entries: Sequence[Entry]) -> None:
        """Rewrite the file: its first `keep_bytes` unchanged, then `entries`.

        After a crash the file is the old one or the new one, never a mixture. Raises `OSError`.
        """
        draft = self.path.with_suffix(".draft")
        with open_private(draft, "wb") as file:
            file.write(self.read(0, keep_bytes))
            file.writelines(frames.frames(entries))
            file.flush()
            # Before the rename: else a crash may leave the new name with no content.
            os.fsync(file.fileno())
            size = file.tell()
        draft.replace(self.path)
        sync_folder(self.path.parent)
        self.size = size

    def delete(self) -> None:
        """Close and remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def scan(self, start: int) -> frames.Scan:
        """The entries from byte `start` to the end. Raises `OSError`."""
        return frames.scan(self.read(start, self.size), is_end=True)


def existing(folder: Path) -> Iterator[Segment]:
    """The segments in a folder, oldest first."""
    numbers = sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}") if path.stem.isdigit())
    return (Segment(folder, number) for number in numbers)


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable: an fsync of a file does not cover its name. Raises `OSError`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
