"""``make unit``: two sessions of pytest side by side, each with half of the tests that start no servers.

Two workers of pytest-xdist would each collect all tests, and send three reports of each one to a third process, which
costs as much as a short test itself. The halves are folders that take nearly the same time; whatever ``FIRST`` does not
name is in the second.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ALL: Final = ("tests/unit", "tests/contract")
FIRST: Final = tuple(f"tests/unit/{name}" for name in ("api", "assistant", "kube", "page", "scheduler", "terminal"))
NO_TESTS: Final = 5
"""pytest's exit code where it collected none, as one half does with ``-k word``."""


MEMORY: Final = Path("/dev/shm")  # noqa: S108 # our own folders in it have names that are random
"""Linux's file system in memory."""
ENOUGH_BYTES: Final = 1 << 30


def environment(given: Mapping[str, str], memory: Path = MEMORY) -> dict[str, str]:
    """The environment of both sessions: temporary files are in memory where there is room for them.

    The tests of the spool wait for the disk to flush. Where the caller chose a folder, it remains.
    """
    if "TMPDIR" in given or not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < ENOUGH_BYTES:
        return dict(given)
    return {**given, "TMPDIR": str(memory)}


def commands(arguments: Sequence[str]) -> list[list[str]]:
    """The command lines of both sessions."""
    # Files of tests that passed are removed at once, because they may take memory.
    python = [sys.executable, "-m", "pytest", "-n", "0", "-o", "tmp_path_retention_policy=failed", *arguments]
    # The second has a cache of its own: each session replaces the list of the tests that failed.
    second = ["-o", "cache_dir=.pytest_cache/second", *(f"--ignore={folder}" for folder in FIRST)]
    return [[*python, *FIRST], [*python, *second, *ALL]]


def exit_code(codes: Sequence[int]) -> int:
    """What both sessions end with: the worse of the two, and ``NO_TESTS`` only where neither found one."""
    # A session that a signal ended has a negative code.
    found = [code if code >= 0 else 1 for code in codes if code != NO_TESTS]
    return max(found, default=NO_TESTS)


def main(arguments: Sequence[str]) -> int:
    first, second = commands(arguments)
    with tempfile.TemporaryFile() as output:
        # What the second prints is shown when the first has ended: lines of both would mix.
        other = subprocess.Popen(second, stdout=output, stderr=subprocess.STDOUT, env=environment(os.environ))
        try:
            code = subprocess.run(first, check=False, env=environment(os.environ)).returncode
        finally:
            other_code = other.wait()
        output.seek(0)
        sys.stdout.write(output.read().decode("utf-8", "replace"))
    return exit_code([code, other_code])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
