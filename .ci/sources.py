"""The tracked files that the lints read, and the report of what they refuse.

A lint is a function from the text of one file to its violations. `run` takes the paths from the command line, reads the
files in parallel, prints `file:line: NAME: rule; example` for each violation, and exits with 1 if there are any.
"""

import argparse
import gc
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SMALL = 60
"""Up to so many files one process is faster than two, which take a tenth of a second to start."""


class Violation(NamedTuple):
    """A refused name or sentence."""

    file: str
    line: int
    name: str
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}: {self.rule}; {self.advice}"


CLASS = re.compile(r"\s*class (\w+)[(:]")

Definition = tuple[str, int, str]
"""File, line and name of a class."""

Check = Callable[[str, str], list[Violation]]


def list_tracked(paths: Sequence[str], *suffixes: str) -> list[str]:
    """List the files below ``paths`` that git knows, of the whole project if there are no paths."""
    below = [os.path.relpath(Path(path).resolve(), ROOT) for path in paths]
    listing = subprocess.run(["git", "ls-files", "--", *below], cwd=ROOT, capture_output=True, text=True, check=True)
    files = listing.stdout.splitlines()
    return [file for file in files if file.endswith(suffixes) and (ROOT / file).exists()]


def read_source(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def list_classes(files: Sequence[str]) -> Iterator[Definition]:
    """List the classes of the product, each with its file and line. To parse every file would take seconds."""
    for file in files:
        if not file.startswith("tests/"):
            for line, text in enumerate(read_source(file).splitlines(), start=1):
                if match := CLASS.match(text):
                    yield file, line, match[1]


def _check_file(check: Check, file: str) -> list[Violation]:
    # Syntax trees have no cycles: the collector would only look through a million nodes, for a third of the time.
    gc.disable()
    return check(file, read_source(file))


def check_files(check: Check, files: Sequence[str]) -> list[Violation]:
    """Check every file, on all cores if there are many."""
    if len(files) <= SMALL:
        return [violation for file in files for violation in _check_file(check, file)]
    with ProcessPoolExecutor() as pool:
        checked = pool.map(partial(_check_file, check), files, chunksize=40)
        return [violation for violations in checked for violation in violations]


def format_counts(violations: Iterable[Violation]) -> list[str]:
    """Format a table of the violations: a line per rule with its number, and a row per top folder."""
    counts = Counter((violation.rule, violation.file.split("/")[0]) for violation in violations)
    rules = Counter(rule for rule, _ in counts.elements()).most_common()
    folders = Counter(folder for _, folder in counts.elements())
    lines = [f"{number:3}. {rule}: {total}" for number, (rule, total) in enumerate(rules, start=1)]
    lines.append(f"{'':14}{'all':>6}" + "".join(f"{number:5}." for number in range(1, len(rules) + 1)))
    for folder, total in sorted(folders.items()):
        lines.append(f"{folder:14}{total:6}" + "".join(f"{counts[rule, folder]:6}" for rule, _ in rules))
    return [*(lines if rules else []), f"{folders.total()} in all"]


def run(description: str, find_violations: Callable[[list[str]], Iterable[Violation]]) -> int:
    """Run a lint as a command: print what it refuses below the paths of the command line, or the counts of it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("paths", nargs="*", help="files and folders to check (default: everything that git tracks)")
    parser.add_argument("--count", action="store_true", help="print totals per rule and per top folder only")
    arguments = parser.parse_args()
    violations = sorted(set(find_violations(arguments.paths)))
    for line in format_counts(violations) if arguments.count else map(str, violations):
        print(line)
    if violations and not arguments.count:
        print(f"violations: {len(violations)}; the rules: {sys.argv[0]}")
    return 1 if violations else 0
