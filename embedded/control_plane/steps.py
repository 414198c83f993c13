"""How far a build is: a bar on a terminal, a plain line every few seconds elsewhere, or nothing."""

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
    """What a build reports."""

    def note(self, text: str) -> None:
        """Something that the person should know, in one line."""

    def at(self, what: str, done: int, total: int) -> None:
        """So many of ``total`` are done of this part of the work."""

    def stop(self) -> None:
        """No more will come, whether all is done or not."""


class Silent:
    """Reports nothing."""

    def note(self, text: str) -> None:
        pass

    def at(self, what: str, done: int, total: int) -> None:
        pass

    def stop(self) -> None:
        pass


class OnTerminal:
    """One bar, which begins again with every part."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self._task = self._bar.add_task("", visible=False)

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def at(self, what: str, done: int, total: int) -> None:
        self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total, visible=True)

    def stop(self) -> None:
        self._bar.stop()


class InLines:
    """A line now and then, for logs; ``clock`` in seconds."""

    def __init__(self, write_line: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write_line = write_line
        self._clock = clock
        self._part = ""
        self._next_line = 0.0

    def note(self, text: str) -> None:
        self._write_line(text)

    def at(self, what: str, done: int, total: int) -> None:
        if what != self._part or done == total or self._clock() >= self._next_line:
            self._part = what
            self._next_line = self._clock() + LINE_EVERY_SECONDS
            self._write_line(f"{what}: {done} of {total}")

    def stop(self) -> None:
        pass


class SharedSteps:
    """Also writes every step to a file, so that another process that waits for this build can show it."""

    def __init__(self, own: Steps, file: Path) -> None:
        self._own = own
        self._file = file

    def note(self, text: str) -> None:
        self._own.note(text)

    def at(self, what: str, done: int, total: int) -> None:
        self._own.at(what, done, total)
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps([what, done, total]), encoding="utf-8")
        part.replace(self._file)

    def stop(self) -> None:
        self._own.stop()

    def show_those_of_others(self) -> None:
        """Report the step that somebody else has come to."""
        try:
            what, done, total = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return
        self._own.at(str(what), int(done), int(total))


def steps_on(console: Console) -> Steps:
    """The bar where there is a terminal, else lines."""
    if console.is_terminal:
        return OnTerminal(console)
    return InLines(lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True))
