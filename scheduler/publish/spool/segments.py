"""Files of a spool: `000000000001.spool`, … Each is only appended to, and sealed when it is large.

What touches a file raises one of `files.FAILURES`, unless it says that it never does.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scheduler.publish.spool import files, frames
from scheduler.publish.spool.frames import Entry

SUFFIX: Final = ".spool"
_PROBE: Final = bytes(4096)
"""A block of most file systems."""


class Segment:
    """One file. size: bytes of whole frames in it. is_thin: it is known to hold no device detail."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.path = folder / f"{number:012}{SUFFIX}"
        self.size = files.measure(self.path) if files.is_there(self.path) else 0
        self.is_thin = False
        self._file: int | None = None

    @property
    def is_there(self) -> bool:
        """True while it is in the folder, from which somebody else may have removed it."""
        return files.is_there(self.path)

    @property
    def may_be_thinned(self) -> bool:
        return bool(self.size) and not self.is_thin

    def create(self) -> int:
        """Make the file ready for appends, durable under its name, unless it is."""
        if self._file is not None:
            return self._file
        # Not for appends alone: then Linux ignores the offset of a write, and torn bytes could not be overwritten.
        file = files.open_file(self.path, files.WRITE)
        try:
            files.sync_folder(self.path.parent)
        except files.FAILURES:
            # Each further try would leave another descriptor open.
            files.close(file)
            raise
        self._file = file
        return file

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries or none; of a write that fails, what was written by then is cut off again."""
        file, parts = self.create(), frames.encode_frames(entries)
        try:
            files.write(file, parts, self.size)
        except files.FAILURES:
            # Where truncating fails too, the next append overwrites the torn bytes: it writes at `size`.
            with contextlib.suppress(*files.FAILURES):
                files.truncate(file, self.size)
            raise
        self.size += sum(map(len, parts))
        self.is_thin = False

    def probe(self) -> None:
        """Probe whether more can be written now; raises where it can't. Nothing of the probe remains."""
        file = self.create()
        try:
            files.write(file, [_PROBE], self.size)
        finally:
            files.truncate(file, self.size)

    def sync(self) -> None:
        """Make what was appended durable."""
        if self._file is not None:
            files.sync(self._file)

    def duplicate_handle(self) -> int | None:
        """Duplicate the file descriptor for another thread to sync and close; None where nothing was appended."""
        return None if self._file is None else files.duplicate(self._file)

    def close(self) -> None:
        files.close(self._file)
        self._file = None

    def read(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes of complete frames from `offset`."""
        length = max(min(length, self.size - offset), 0)
        if self._file is not None:
            return files.read(self._file, length, offset)  # works also after the file's name was deleted
        with files.opened(self.path, files.READ) as file:
            return files.read(file, length, offset)

    def cut_torn_tail(self) -> int:
        """Cut off what follows the last intact frame; return the number of bytes."""
        data = files.read_all(self.path)
        entries = frames.scan(data, is_end=True).intact
        self.size = entries[-1][1] if entries else 0
        if torn := len(data) - self.size:
            files.truncate(self.path, self.size)
        return torn

    def rewrite(self, keep_bytes: int, entries: Sequence[Entry]) -> None:
        """Write the first `keep_bytes` unchanged, then `entries`. Verdicts of the old file are in the new one too."""
        parts = [self.read(0, keep_bytes), *frames.encode_frames(entries)]
        # A crash may bring the old file back after all: what was sent of the new one is sent again.
        files.replace(self.path, parts)
        self.size = sum(map(len, parts))

    def delete(self) -> None:
        """Close and remove the file. The next start removes what can't be removed now. Never raises."""
        self.close()
        files.discard(self.path)

    def scan(self, start: int) -> frames.Scan:
        """Scan the entries from byte `start` to the end."""
        return frames.scan(self.read(start, self.size), is_end=True)


def list_existing(folder: Path) -> Iterator[Segment]:
    """List the segments in a folder, oldest first."""
    names = files.list_names(folder)
    for name in names:
        if name.endswith(files.DRAFT):
            files.discard(folder / name)
    stems = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return (Segment(folder, number) for number in sorted(int(stem) for stem in stems if stem.isdigit()))
