"""Shows the progress of a build: a bar on a terminal, a plain line every few seconds elsewhere, or nothing."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

LINE_EVERY_SECONDS: Final = 10.0


class Steps(Protocol):
    """Receives what a build reports."""

    def note(self, text: str) -> None:
        """Write one line for the person who waits."""

    def report(self, what: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` units of this part of the build are done."""

    def stop(self) -> None:
        """Stop the display: the build has ended, complete or not."""


class NoSteps:
    """Reports nothing."""

    def note(self, text: str) -> None:
        pass

    def report(self, what: str, done: int, total: int) -> None:
        pass

    def stop(self) -> None:
        pass


class StepsBar:
    """One bar, which starts at zero with every part of the build."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self._task = self._bar.add_task("", visible=False)

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def report(self, what: str, done: int, total: int) -> None:
        # Only now: a build that is in the cache already should draw nothing. Starting twice does nothing.
        self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total, visible=True)

    def stop(self) -> None:
        self._bar.stop()


class StepsLines:
    """A line every few seconds, for logs; ``clock`` in seconds."""

    def __init__(self, write_line: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write_line = write_line
        self._clock = clock
        self._part = ""
        self._next_line = 0.0

    def note(self, text: str) -> None:
        self._write_line(text)

    def report(self, what: str, done: int, total: int) -> None:
        # The last step is always shown, or a log would end below 100 %.
        if what != self._part or done == total or self._clock() >= self._next_line:
            self._part = what
            self._next_line = self._clock() + LINE_EVERY_SECONDS
            self._write_line(f"{what}: {done} of {total}")

    def stop(self) -> None:
        pass


class SharedSteps:
    """Also writes every step to a file, so that another process that waits for this build can show it."""

    def __init__(self, steps: Steps, file: Path) -> None:
        self._steps = steps
        self._file = file

    def note(self, text: str) -> None:
        self._steps.note(text)

    def report(self, what: str, done: int, total: int) -> None:
        self._steps.report(what, done, total)
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps([what, done, total]), encoding="utf-8")
        part.replace(self._file)

    def stop(self) -> None:
        self._steps.stop()

    def report_builder(self) -> None:
        """Report the step that the process which builds has reached."""
        try:
            what, done, total = json.loads(self._file.read_bytes())
        # The builder has not begun to report, or has just finished.
        except (OSError, ValueError):
            return
        self._steps.report(str(what), int(done), int(total))


def create_steps(console: Console) -> Steps:
    """Create the bar for a terminal, else lines."""
    if console.is_terminal:
        return StepsBar(console)
    return StepsLines(lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True))
