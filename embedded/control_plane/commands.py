"""Run a long command line by line: what it says goes to a log and to whoever shows how far it is.

The command ends with this process, however that ends, and it leaves the machine to others: it runs at low priority.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import BuildError
from embedded.process import Leash, last_lines

NICE = ("/usr/bin/env", "nice", "-n", "10")


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands of one undertaking: in one folder, with one environment, into one log."""

    folder: Path
    environment: Mapping[str, str]
    log: Path

    def run(self, command: Sequence[str], at_line: Callable[[str], None] = lambda _: None) -> list[str]:
        """Its standard output, by lines; ``at_line`` gets every line of its standard error as it comes.

        Raises BuildError with the log's last lines when it fails.
        """
        leash = Leash()
        try:
            return self._run(leash, command, at_line)
        finally:
            leash.close()

    def _run(self, leash: Leash, command: Sequence[str], at_line: Callable[[str], None]) -> list[str]:
        output = self.log.with_suffix(".out")
        with self.log.open("a", encoding="utf-8") as log, output.open("w+", encoding="utf-8") as out:
            log.write(f"$ {' '.join(command)}\n")
            with subprocess.Popen(
                leash.command([*NICE, *command]),
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                pass_fds=leash.inherited,
            ) as process:
                try:
                    for line in process.stderr or ():
                        log.write(line)
                        at_line(line.rstrip("\n"))
                except BaseException:
                    process.kill()
                    raise
            log.flush()
            if process.returncode:
                what = f"{' '.join(command[:2])} failed (exit status {process.returncode})"
                raise BuildError(what, self.log, last_lines(self.log))
            out.seek(0)
            return out.read().splitlines()
