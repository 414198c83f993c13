"""The container image holds everything that its commands import and read, checked without Docker.

The tests copy what ``.dockerignore`` admits into an empty folder, as ``docker build`` does, build the wheel there, and
run its commands.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[3]
COMMANDS = ("scheduler", "ingest", "pipeline", "api")
PATTERNS = tuple(
    line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and not line.startswith("#")
)
ALLOWED = {pattern.removeprefix("!") for pattern in PATTERNS if pattern.startswith("!")}
FIRST_PARTY = {path.parent.name for path in ROOT.glob("*/*.py") if not path.parent.name.startswith(".")}

IMPORT = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
DATA_FILE = re.compile(r"""["']([\w./-]+\.(?:toml|ya?ml|json|proto))["']""")


def matches(pattern: str, path: Path) -> bool:
    """Tell whether a pattern of .dockerignore covers a path or a folder above it, as Docker reads ``*`` and ``**/``."""
    expression = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
    return any(re.fullmatch(expression, candidate.as_posix()) for candidate in (path, *path.parents))


def is_admitted(path: Path) -> bool:
    """Tell whether ``docker build`` sees a path of the repository: the last pattern that matches decides."""
    admitted = True
    for pattern in PATTERNS:
        if matches(pattern.removeprefix("!"), path):
            admitted = pattern.startswith("!")
    return admitted


@cache
def read_modules(package: str) -> tuple[tuple[Path, str], ...]:
    """Read every module of a package with its text."""
    return tuple((path, path.read_text("utf-8")) for path in (ROOT / package).rglob("*.py"))


def list_imported_packages(package: str) -> set[str]:
    """List the top-level first-party packages that a package's modules import, also inside functions."""
    names = {name for _, text in read_modules(package) for name in IMPORT.findall(text)}
    return names & FIRST_PARTY


def list_needed_packages() -> set[str]:
    """List the packages of the image's commands and everything first-party that these import, transitively."""
    needed: set[str] = set()
    waiting = set(COMMANDS)
    while waiting:
        package = waiting.pop()
        needed.add(package)
        waiting |= list_imported_packages(package) - needed
    return needed


def find_named_files(package: str) -> Iterator[Path]:
    """Find the data files of the repository that a package's modules name, by a path from one of the folders above
    them.
    """
    for path, text in read_modules(package):
        for name in DATA_FILE.findall(text):
            above = [folder for folder in path.parents if folder.is_relative_to(ROOT)]
            yield from (folder / name for folder in above if (folder / name).is_file())


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel that is built of exactly what ``docker build`` would see of this repository."""
    folder = tmp_path_factory.mktemp("image")

    def exclude(parent: str, names: list[str]) -> set[str]:
        return {name for name in names if not is_admitted((Path(parent) / name).relative_to(ROOT))}

    sources = folder / "sources"
    sources.mkdir()
    for entry in ROOT.iterdir():
        if not is_admitted(entry.relative_to(ROOT)):
            continue
        if entry.is_dir():
            shutil.copytree(entry, sources / entry.name, ignore=exclude)
        else:
            shutil.copy(entry, sources)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=sources, check=True, capture_output=True)
    shutil.rmtree(sources)
    [wheel] = folder.glob("*.whl")
    with ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


def run_in(image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python inside the folder with an environment that points nowhere else."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=image,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_allow_list_names_every_package_that_the_commands_import() -> None:
    assert list_needed_packages() - ALLOWED == set()


def test_the_allow_list_names_only_what_is_in_the_repository() -> None:
    assert {name for name in ALLOWED if not (ROOT / name).exists()} == set()


def test_everything_else_is_excluded_first() -> None:
    assert PATTERNS[0] == "*"
    assert not is_admitted(Path(".git"))
    assert not is_admitted(Path("tests/conftest.py"))
    assert not is_admitted(Path("scheduler/__pycache__/serve.cpython-311.pyc"))
    assert is_admitted(Path("engine/fit/device-config.yaml"))


def test_data_files_that_the_commands_name_are_in_the_image(image: Path) -> None:
    named = {path.relative_to(ROOT) for package in list_needed_packages() for path in find_named_files(package)}
    assert Path("engine/fit/device-config.yaml") in named
    assert {path for path in named if not (image / "schedulerlog" / "packages" / path).is_file()} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_its_help_in_the_image(image: Path, command: str) -> None:
    done = run_in(image, "-m", "schedulerlog", command, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_the_modules_that_need_grpc_are_those_that_the_build_does_not_import() -> None:
    source = (ROOT / "deploy/image/import_all.py").read_text("utf-8")
    [left_out] = re.findall(r"WITHOUT_ITS_PACKAGES = frozenset\(\{(.*?)\}\)", source)
    needing = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "ingest").rglob("*.py")
        if re.search(r"^(import|from) grpc\b", path.read_text("utf-8"), re.M)
    }
    assert set(re.findall(r'"([\w.]+)"', left_out)) == needing
