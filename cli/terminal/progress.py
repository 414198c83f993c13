"""A line on the terminal while a long file is read: how much of it, in place of a screen that stands still."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

_QUIET_SECONDS: Final = 1.0
"""A file that is read sooner needs no line."""
_PAUSE_SECONDS: Final = 0.2
_MEGABYTE: Final = 1_000_000
_ERASE: Final = "\r\x1b[K"


class ReadingProgress:
    """Shows the bytes of the file that is read, on one line that is written over and erased at the end."""

    def __init__(self, output: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Show it on ``output``; None: standard error as it is now, not as it was when this module was imported."""
        self._output, self._clock = output or sys.stderr, clock
        self._next = clock() + _QUIET_SECONDS
        self._is_shown = False

    def show(self, file: Path, position: int) -> None:
        """Show that ``position`` bytes of the file were read; a pipe has no size that is known."""
        now = self._clock()
        if now < self._next or not self._output.isatty():
            return
        self._next, self._is_shown = now + _PAUSE_SECONDS, True
        size = file.stat().st_size if file.is_file() else 0
        of_all = f" of {size // _MEGABYTE:,} MB ({position * 100 // size} %)" if size else " MB"
        name = file.name if size else "standard input"
        self._output.write(f"{_ERASE}Reading {name}: {position // _MEGABYTE:,}{of_all}")
        self._output.flush()

    def erase(self) -> None:
        """Erase the line, if there is one."""
        if self._is_shown:
            self._output.write(_ERASE)
            self._output.flush()
            self._is_shown = False
