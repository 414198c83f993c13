"""Runs a long command and passes every line that it prints to a log and to a progress display.

The command ends with this process, even if that is killed, and runs at low priority, because a build loads all cores.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.embedded.errors import BuildError
from dev.embedded.process import ParentWatch, read_last_lines

NICE = ("/usr/bin/env", "nice", "-n", "10")


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands of one build: in one folder, with one environment, into one log."""

    folder: Path
    environment: Mapping[str, str]
    log: Path

    def run(self, command: Sequence[str], at_line: Callable[[str], None] = lambda _: None) -> list[str]:
        """Run the command and return the lines of its standard output; ``at_line`` gets every line of its standard
        error as it is printed.

        Raises BuildError with the last lines of the log if it fails.
        """
        parent_watch = ParentWatch()
        try:
            return self._run(parent_watch, command, at_line)
        finally:
            parent_watch.close()

    def _run(self, parent_watch: ParentWatch, command: Sequence[str], at_line: Callable[[str], None]) -> list[str]:
        output = self.log.with_suffix(".out")
        with self.log.open("a", encoding="utf-8") as log, output.open("w+", encoding="utf-8") as out:
            log.write(f"$ {' '.join(command)}\n")
            with subprocess.Popen(
                parent_watch.build_command([*NICE, *command]),
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                # Into a file and not a pipe: two pipes read one after the other can block each other when the second is
                # full.
                stdout=out,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                # Compilers quote paths, which need not be UTF-8.
                errors="replace",
                pass_fds=parent_watch.inherited,
            ) as process:
                try:
                    for line in process.stderr or ():
                        log.write(line)
                        at_line(line.rstrip("\n"))
                except BaseException:
                    # An interrupted build must not keep all cores busy.
                    process.kill()
                    raise
            # ``read_last_lines`` reads the file, not our buffer.
            log.flush()
            if process.returncode:
                what = f"{' '.join(command[:2])} failed (exit status {process.returncode})"
                raise BuildError(what, self.log, read_last_lines(self.log))
            out.seek(0)
            return out.read().splitlines()
