"""``python -m tests.mutation [FOLDER ...] --count N --seed S``: do the unit tests of a module notice a slip in it?

Random mutants of the modules below each folder (engine unless given) run, one after the other, against the unit tests
of their own module: the test file of its name, and those that import it; where there are none, those of its package. A
mutant that no test fails for survives, and is printed. The tests have to pass without mutants.
"""

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.mutants import Mutant, list_mutants

CPU_SECONDS: Final = 120
"""Limit of the tests of one mutant: with it, a mutant that never ends counts as killed."""
PRELOADED: Final = ("numpy", "orjson", "pydantic", "typer.testing", "yaml")
"""Libraries that most tests import, without plugins of pytest, which it loads itself."""


def draw(folders: Sequence[str], count: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Draw mutants of the modules below ``folders``, each place as likely as any other."""
    paths = [path for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    everything = [(path, mutant) for path in paths for mutant in list_mutants(path.read_bytes())]
    return random.Random(seed).sample(everything, min(count, len(everything)))


@cache
def list_tests(path: Path, tests: Path = Path("tests/unit")) -> list[Path]:
    """List the unit tests of a module, those that bear its name first; without any, those of its package."""
    name, folder = path.stem, tests / path.parent
    package = str(path.parent).replace("/", ".")
    imported = re.compile(rf"^\s*(from {package}\.{name} import|from {package} import .*\b{name}\b)", re.MULTILINE)
    importers = [test for test in sorted(tests.rglob("test_*.py")) if imported.search(_read(test))]
    mirrors = [test for test in (folder / f"test_{name}.py",) if test.exists()]
    return list(dict.fromkeys([*mirrors, *importers])) or _list_package_tests(folder)


def _list_package_tests(folder: Path) -> list[Path]:
    """List the tests of the nearest package above that has some."""
    while not folder.is_dir():
        folder = folder.parent
    return sorted(folder.glob("test_*.py")) or sorted(folder.rglob("test_*.py"))


@cache
def _read(path: Path) -> str:
    return path.read_text("utf-8")


def copy_checkout(folder: Path) -> None:
    """Copy the files of the checkout, so that nobody else meets a mutant."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in filter(os.path.isfile, listed):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, folder / name)


def run_tests(tests: Sequence[Path]) -> bool:
    """Run the tests in a process of their own, and return whether they pass."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        sys.path.insert(0, str(Path.cwd()))
        sys.dont_write_bytecode = True
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        options = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "600"]
        os._exit(int(pytest.main([*options, *map(str, tests)])))
    _, status = os.waitpid(child, 0)
    return status == 0


def run(drawn: Sequence[tuple[Path, Mutant]]) -> Iterator[tuple[Path, Mutant, str]]:
    """Yield each mutant with its end: killed, survived, or untested where its module has no tests.

    Raises ``RuntimeError`` if the tests of the first one fail without it: then no end would mean anything.
    """
    if drawn and not run_tests(list_tests(drawn[0][0])):
        raise RuntimeError(f"the tests of {drawn[0][0]} fail without a mutant: run them with pytest")
    for path, mutant in drawn:
        tests = list_tests(path)
        if not tests:
            yield path, mutant, "untested"
            continue
        source = path.read_bytes()
        path.write_bytes(mutant.apply(source))
        has_survived = run_tests(tests)
        path.write_bytes(source)
        yield path, mutant, "survived" if has_survived else "killed"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", default=["engine"], help="engine unless given")
    parser.add_argument("--count", type=int, default=200, help="mutants")
    parser.add_argument("--seed", type=int, default=1, help="seed of the mutants; with the same seed they are the same")
    arguments = parser.parse_args()
    # Loaded once for all processes that are forked: the modules of the checkout are not.
    for name in PRELOADED:
        __import__(name)
    ends = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(Path(folder))
        # From here on nothing depends on the checkout, which may change meanwhile.
        os.chdir(folder)
        for path, mutant, end in run(draw(arguments.folders, arguments.count, arguments.seed)):
            ends[end] += 1
            if end != "killed":
                print(f"{end}: {path}:{mutant.describe()}", flush=True)
            if ends.total() % 20 == 0:
                print(f"{ends.total()}: {dict(ends)}", file=sys.stderr, flush=True)
    print(f"{ends['killed']} of {ends.total()} mutants killed, seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
