"""``make unit``: three sessions of pytest side by side, each with a third of the tests that start no servers.

``make test`` adds a fourth one, of the tests with servers that ``--also`` names, which two workers share.

Workers of pytest-xdist would each collect all tests, and send three reports of each one to one more process, which
costs as much as a short test itself. There are three for two cores because some tests wait: for a timeout, or for a
server's next look at what it serves. The thirds are folders; whatever ``FOLDERS`` does not name is in the last.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

ALSO: Final = "--also"
"""Option before all others: paths of tests with servers, as one word."""
ALL: Final = ("tests/unit", "tests/contract")
FOLDERS: Final = tuple(
    tuple(f"tests/unit/{name}" for name in names)
    for names in (
        ("api", "cli", "engine/diagnosis", "engine/suggestions", "engine/summaries", "page"),
        ("engine/fit", "ingest", "pipeline", "scheduler"),
    )
)
"""Folders of the first session, which imports the API as the last does, and of the second, which need not."""
NO_TESTS: Final = 5
"""pytest's exit code where it collected none, as most sessions do with ``-k word``."""


MEMORY: Final = Path("/dev/shm")  # noqa: S108 # our own folders in it have names that are random
"""Linux's file system in memory."""
ENOUGH_BYTES: Final = 1 << 30


def build_environment(variables: Mapping[str, str], memory: Path = MEMORY) -> dict[str, str]:
    """Build the environment of all sessions: temporary files are in memory where there is room for them.

    The tests of the spool wait for the disk to flush. Where the caller chose a folder, it remains.
    """
    if "TMPDIR" in variables or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < ENOUGH_BYTES:
        return dict(variables)
    return {**variables, "TMPDIR": str(memory)}


def build_commands(arguments: Sequence[str]) -> list[list[str]]:
    """Build the command lines of the sessions of units."""
    # Files of tests that passed are removed at once, because they may take memory.
    python = [sys.executable, "-m", "pytest", "-n", "0", "-o", "tmp_path_retention_policy=failed", *arguments]
    others = [f"--ignore={folder}" for folders in FOLDERS for folder in folders]
    # Each has a cache of its own, as it replaces the list of the tests that failed.
    return [
        [*python, "-o", f"cache_dir=.pytest_cache/{number}", *chosen]
        for number, chosen in enumerate([*FOLDERS, (*others, *ALL)], 1)
    ]


def build_server_command(paths: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Build the command line of the session of tests with servers."""
    return [sys.executable, "-m", "pytest", "-n", "2", *arguments, "-o", "cache_dir=.pytest_cache/servers", *paths]


def derive_exit_code(codes: Sequence[int]) -> int:
    """Derive the exit code of the run: the worst of the sessions, and ``NO_TESTS`` only where none found one."""
    # A session that a signal ended has a negative code.
    exit_codes = [code if code >= 0 else 1 for code in codes if code != NO_TESTS]
    return max(exit_codes, default=NO_TESTS)


def main(arguments: Sequence[str]) -> int:
    also: Sequence[str] = ()
    if arguments[:1] == [ALSO]:
        also, arguments = arguments[1].split(), arguments[2:]
    first, *others = build_commands(arguments)
    environment = build_environment(os.environ)
    # Servers keep their data where the caller wants them. They are started first, because they take longest.
    sessions = [(build_server_command(also, arguments), dict(os.environ))] if also else []
    sessions += [(command, environment) for command in others]
    with ExitStack() as stack:
        # What the others print is shown when the first has ended: lines of all would mix.
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in sessions]
        started = [
            subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=variables)
            for (command, variables), output in zip(sessions, outputs, strict=True)
        ]
        try:
            codes = [subprocess.run(first, check=False, env=environment).returncode]
        finally:
            other_codes = [process.wait() for process in started]
        # Those that failed come last, where one looks first.
        for _, output in sorted(
            zip(other_codes, outputs, strict=True), key=lambda ended: ended[0] not in (0, NO_TESTS)
        ):
            output.seek(0)
            sys.stdout.write(output.read().decode("utf-8", "replace"))
    return derive_exit_code([*codes, *other_codes])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
