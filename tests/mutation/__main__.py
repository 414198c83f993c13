"""``python -m tests.mutation [PATH ...] --count N --seed S``: do the unit tests of a module notice a slip in it?

Random mutants of the modules at or below each path (engine unless given) run, one after the other, against the unit
tests of their own module: the test file of its name, those that import it, and the recorded answers of its package and
of the packages around it; where there are none of the first two, those of its package. A mutant that no test fails for
survives, and is printed. All of these tests have to pass without mutants first.
"""

import argparse
import compileall
import importlib
import os
import py_compile
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from math import sqrt
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.mutants import Mutant, list_mutants

CPU_SECONDS: Final = 120
"""Limit of the tests of one mutant: with it, a mutant that never ends counts as killed."""
PRELOADED: Final = ("httpx", "numpy", "orjson", "pydantic", "typer.testing", "yaml")
"""Libraries that most tests import, without plugins of pytest, which it loads itself."""
LAYERS_BELOW: Final = ("schemas.answers.diagnosis", "schemas.documents", "schemas.events", "dev.embedded")
"""Modules of ours that most tests import; loaded once where no mutants are drawn from their packages."""


def draw(paths: Sequence[str], count: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Draw mutants of the modules at or below ``paths``: as many of a module as it has lines, its places by chance.

    Draws at equal steps through the lines of all modules, from a random first line: so no module is left out by chance.
    """
    chance = random.Random(seed)
    sources = {module: module.read_bytes() for path in paths for module in list_modules(Path(path))}
    places = {path: list_mutants(source) for path, source in sources.items()}
    modules = [path for path in sources if places[path]]
    ends = list(accumulate(sources[path].count(b"\n") for path in modules))
    step = ends[-1] / count
    first = chance.uniform(0, step)
    drawn = Counter(modules[bisect_right(ends, min(first + turn * step, ends[-1] - 1))] for turn in range(count))
    mutants = [
        (path, mutant)
        for path, number in drawn.items()
        for mutant in chance.sample(places[path], min(number, len(places[path])))
    ]
    # In any order: a run that is stopped has judged a sample of all modules.
    chance.shuffle(mutants)
    return mutants


def list_modules(path: Path) -> list[Path]:
    """List the modules below a folder; a module is its only one."""
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


@cache
def list_tests(path: Path, tests: Path = Path("tests/unit")) -> list[Path]:
    """List the unit tests of a module: those that bear its name, those that import it, recorded answers around it.

    Without any of the first two, those of its package. Short files come before long ones, and tests of random examples
    last: most slips are killed early.
    """
    name, folder = path.stem, tests / path.parent
    package = str(path.parent).replace("/", ".")
    imported = re.compile(rf"^\s*(from {package}\.{name} import|from {package} import .*\b{name}\b)", re.MULTILINE)
    importers = [test for test in sorted(tests.rglob("test_*.py")) if imported.search(_read(test))]
    mirrors = [test for test in (folder / f"test_{name}.py",) if test.exists()]
    others = importers if mirrors or importers else _list_package_tests(folder)
    recorded = [test for package in (folder, *folder.parents) for test in package.glob("test_recorded_*.py")]
    return list(dict.fromkeys([*mirrors, *sorted({*others, *recorded}, key=_estimate_time)]))


def _estimate_time(test: Path) -> tuple[bool, int]:
    return "any_" in test.name, test.stat().st_size


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


def run_tests(tests: Sequence[Path], cpu_seconds: int) -> bool:
    """Run the tests in a process of their own, and return whether they pass."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        options = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "600"]
        os._exit(int(pytest.main([*options, *map(str, tests)])))
    _, status = os.waitpid(child, 0)
    return status == 0


def run(drawn: Sequence[tuple[Path, Mutant]]) -> Iterator[tuple[Path, Mutant, str]]:
    """Yield each mutant with its end: killed, survived, or untested where its module has no tests.

    Raises ``RuntimeError`` if a test fails without any of them: then no end would mean anything.
    """
    everything = sorted({test for path, _ in drawn for test in list_tests(path)})
    if everything and not run_tests(everything, 20 * CPU_SECONDS):
        raise RuntimeError(f"a unit test fails without a mutant: run {' '.join(map(str, everything))} with pytest")
    for path, mutant in drawn:
        tests = list_tests(path)
        if not tests:
            yield path, mutant, "untested"
            continue
        source = path.read_bytes()
        path.write_bytes(mutant.apply(source))
        has_survived = run_tests(tests, CPU_SECONDS)
        path.write_bytes(source)
        yield path, mutant, "survived" if has_survived else "killed"


def derive_interval(killed: int, count: int) -> tuple[float, float]:
    """Derive the 95 % confidence interval of a share, as Wilson does."""
    z = 1.96
    share, spread = killed / count, z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / count + spread / (4 * count))
    return middle - half, middle + half


def load_early(paths: Sequence[str]) -> None:
    """Import once, for all processes that are forked, what most tests import and no mutant changes."""
    modules = [*PRELOADED, *(name for name in LAYERS_BELOW if name.partition(".")[0] not in map(_name_top, paths))]
    for name in modules:
        importlib.import_module(name)
    for path in paths:
        for module in list_modules(Path(path)):
            # By the hash of its source: a mutant may have the size and the second of the module that it replaces.
            compileall.compile_file(module, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    sys.dont_write_bytecode = False


def _name_top(path: str) -> str:
    return Path(path).parts[0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", default=["engine"], help="engine unless given")
    parser.add_argument("--count", type=int, default=200, help="mutants")
    parser.add_argument("--seed", type=int, default=1, help="seed of the mutants; with the same seed they are the same")
    arguments = parser.parse_args()
    ends = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(Path(folder))
        # From here on nothing depends on the checkout, which may change meanwhile.
        os.chdir(folder)
        sys.path.insert(0, folder)
        load_early(arguments.paths)
        for path, mutant, end in run(draw(arguments.paths, arguments.count, arguments.seed)):
            ends[end] += 1
            if end != "killed":
                print(f"{end}: {path}:{mutant.describe()}", flush=True)
            if ends.total() % 20 == 0:
                print(f"{ends.total()}: {dict(ends)}", file=sys.stderr, flush=True)
    low, high = derive_interval(ends["killed"], ends.total())
    print(f"{ends['killed']} of {ends.total()} mutants killed ({low:.1%} to {high:.1%}), seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
