"""Scheduler processes without the second that Python takes to import everything: forked from one that has imported.

`python -m tests.support.harness.scheduler_nursery` is that one. It reads a line of JSON (a log file and the arguments),
forks, runs `scheduler serve` in the child, writes the child's process id, waits for its end and writes how it ended.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Self

from tests.support.harness.scheduler_process import SchedulerProcess


class Nursery:
    """Begins one child after the other."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.harness.scheduler_nursery"]
        self._parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe(self._parent.stdin).close()
        self._parent.wait(30)
        self._pipe(self._parent.stdout).close()

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe
        return pipe

    def begin(self, arguments: list[str], log: Path) -> "Child":
        requests, answers = self._pipe(self._parent.stdin), self._pipe(self._parent.stdout)
        requests.write(json.dumps([str(log), *arguments]) + "\n")
        requests.flush()
        return Child(int(answers.readline()), answers)


class Child:
    """What `SchedulerProcess` asks of a process."""

    def __init__(self, pid: int, answers: IO[str]) -> None:
        self.pid, self._answers = pid, answers
        self._code: int | None = None

    def poll(self) -> int | None:
        """How it ended, where that was waited for."""
        return self._code

    def send_signal(self, sig: int, /) -> None:
        os.kill(self.pid, sig)

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(int(self._answers.readline()))
        return self._code


class ForkedScheduler(SchedulerProcess):
    """A `SchedulerProcess` from the nursery."""

    def __init__(self, nursery: Nursery, folder: Path, *flags: str) -> None:
        super().__init__(folder, *flags)
        self._nursery = nursery

    def spawn(self, arguments: list[str]) -> Child:
        self.log.touch()
        return self._nursery.begin(arguments, self.log)


def main() -> None:
    from scheduler.__main__ import app

    for line in sys.stdin:
        log, *arguments = json.loads(line)
        child = os.fork()
        if not child:
            _become(Path(log))
            app(arguments)
        _say(child)
        _say(os.waitpid(child, 0)[1])


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _become(log: Path) -> None:
    """A process of its own: what it writes goes into its log, and Ctrl-C is not for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (handle, 1), (handle, 2)):
        os.dup2(source, target)


if __name__ == "__main__":
    main()
