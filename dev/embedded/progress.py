"""Shows the progress of a download: a bar on a terminal, a plain line every few seconds elsewhere, or nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

LINE_EVERY_SECONDS: Final = 5.0
_MB: Final = 1e6


class Progress(Protocol):
    """Receives what a download reports; called from several threads."""

    def note(self, text: str) -> None:
        """Write one line for the person who waits."""

    def start(self, files: int, total_bytes: int) -> None:
        """Begin the download; the arguments are its totals."""

    def report(self, path: str, have_bytes: int) -> None:
        """Report the present bytes of this file; fewer than before if its download started again."""

    def stop(self) -> None:
        """Stop the display: the download has ended, complete or not."""


class NoProgress:
    """Reports nothing."""

    def note(self, text: str) -> None:
        pass

    def start(self, files: int, total_bytes: int) -> None:
        pass

    def report(self, path: str, have_bytes: int) -> None:
        pass

    def stop(self) -> None:
        pass


class _Sum:
    """Bytes of all files together, from reports of single files."""

    def __init__(self) -> None:
        # Four downloads report at once.
        self.lock = threading.Lock()
        self._have: dict[str, int] = {}

    def set(self, path: str, have_bytes: int) -> int:
        self._have[path] = have_bytes
        # Summed again each time: a download that began from the start reports less than before.
        return sum(self._have.values())


class ProgressBar:
    """One bar for all files, drawn by rich."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._sum = _Sum()
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
        )

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def start(self, files: int, total_bytes: int) -> None:
        self._task = self._bar.add_task(f"Downloading {files} jars", total=total_bytes)
        self._bar.start()

    def report(self, path: str, have_bytes: int) -> None:
        with self._sum.lock:
            self._bar.update(self._task, completed=self._sum.set(path, have_bytes))

    def stop(self) -> None:
        self._bar.stop()


class ProgressLines:
    """A line every few seconds, for logs; ``clock`` in seconds."""

    def __init__(self, write_line: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write_line = write_line
        self._clock = clock
        self._sum = _Sum()
        self._total = 0
        self._next_line = 0.0

    def note(self, text: str) -> None:
        self._write_line(text)

    def start(self, files: int, total_bytes: int) -> None:
        self._total = total_bytes
        self._next_line = self._clock() + LINE_EVERY_SECONDS
        self._write_line(f"Downloading {files} jars, {total_bytes / _MB:.0f} MB")

    def report(self, path: str, have_bytes: int) -> None:
        with self._sum.lock:
            have = self._sum.set(path, have_bytes)
            if have >= self._total or self._clock() >= self._next_line:
                self._next_line = self._clock() + LINE_EVERY_SECONDS
                self._write_line(f"{have / _MB:.0f} of {self._total / _MB:.0f} MB")

    def stop(self) -> None:
        pass


def create_progress(console: Console) -> Progress:
    """Create the bar for a terminal, else lines."""
    if console.is_terminal:
        return ProgressBar(console)
    return ProgressLines(lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True))


@contextmanager
def started(progress: Progress, files: int, total_bytes: int) -> Iterator[None]:
    """Calls ``start``, and ``stop`` at the end, also after an error."""
    progress.start(files, total_bytes)
    try:
        yield
    finally:
        progress.stop()
