"""``make unit``: three sessions of pytest side by side, each with a third of the tests that start no servers.

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
    """Build the command lines of the sessions."""
    # Files of tests that passed are removed at once, because they may take memory.
    python = [sys.executable, "-m", "pytest", "-n", "0", "-o", "tmp_path_retention_policy=failed", *arguments]
    others = [f"--ignore={folder}" for folders in FOLDERS for folder in folders]
    # Each has a cache of its own, as it replaces the list of the tests that failed.
    return [
        [*python, "-o", f"cache_dir=.pytest_cache/{number}", *chosen]
        for number, chosen in enumerate([*FOLDERS, (*others, *ALL)], 1)
    ]


def derive_exit_code(codes: Sequence[int]) -> int:
    """Derive the exit code of the run: the worst of the sessions, and ``NO_TESTS`` only where none found one."""
    # A session that a signal ended has a negative code.
    exit_codes = [code if code >= 0 else 1 for code in codes if code != NO_TESTS]
    return max(exit_codes, default=NO_TESTS)


def main(arguments: Sequence[str]) -> int:
    first, *others = build_commands(arguments)
    with ExitStack() as stack:
        # What the others print is shown when the first has ended: lines of all would mix.
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in others]
        started = [
            subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=build_environment(os.environ))
            for command, output in zip(others, outputs, strict=True)
        ]
        try:
            codes = [subprocess.run(first, check=False, env=build_environment(os.environ)).returncode]
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
