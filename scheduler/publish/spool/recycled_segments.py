"""Spool files whose records are all sent, kept so that the next ones are written over them.

The kernel takes longer to find pages for a new file than we take to decide about five thousand nodes; overwriting the
pages of a file that is there costs a tenth of it. A spare is named for its last life, `000000000007.spare`. Nothing in
it can be taken for a record of a later life: the number of a file goes into the checksum of each frame in it.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from scheduler.publish.spool import frames

SUFFIX: Final = ".spare"
MOST: Final = 2
"""One while the file behind it is being sent, and one for when Kafka is late."""


class Spares:
    """At most `MOST` files in a folder. A file that the folder does not let us keep or take is no matter."""

    def __init__(self, folder: Path) -> None:
        """Take over what is there, the oldest first."""
        found = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.stem.isdigit())
        self._sizes = {path: path.stat().st_size for path in found}
        while len(self._sizes) > MOST:
            self._drop()

    @property
    def bytes(self) -> int:
        return sum(self._sizes.values())

    @property
    def highest(self) -> int:
        """The highest number that a file among them had, 0 where there is none."""
        return max((int(path.stem) for path in self._sizes), default=0)

    def keep(self, path: Path) -> None:
        """Take a sent file over, or delete it where there are enough."""
        if len(self._sizes) >= MOST:
            path.unlink(missing_ok=True)
            return
        try:
            # Marked before it is renamed: a file that gets its next number holds no record from the start.
            size = _mark_empty(path)
            spare = path.with_suffix(SUFFIX)
            path.replace(spare)
            self._sizes[spare] = size
        except OSError:
            path.unlink(missing_ok=True)

    def give(self, path: Path) -> None:
        """Rename one to `path`, if there is one."""
        if self._sizes:
            spare = next(iter(self._sizes))
            del self._sizes[spare]
            with contextlib.suppress(OSError):
                spare.replace(path)

    def clear(self) -> None:
        """Give their room back."""
        while self._sizes:
            self._drop()

    def _drop(self) -> None:
        path = next(iter(self._sizes))
        del self._sizes[path]
        with contextlib.suppress(OSError):
            path.unlink()


def _mark_empty(path: Path) -> int:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(handle, frames.END, 0)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)
