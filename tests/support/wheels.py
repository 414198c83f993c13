"""The wheel of this project, installed into a new environment with those packages that its extras name.

No index is asked: the packages are links to those of the environment that the tests run in.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


class Installed(NamedTuple):
    folder: Path
    """Environment of the virtual environment's programs."""
    site_packages: Path
    added: set[str]
    """The names that the wheel brought into ``site_packages``."""

    def run(self, *command: str, also: Path | None = None, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; ``also`` is a folder of further packages."""
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {"COLUMNS": "120", "TERMINAL_WIDTH": "120", "PYTHONDONTWRITEBYTECODE": "1"}
        if also:
            environment["PYTHONPATH"] = str(also)
        program, *words = command
        return subprocess.run(
            [str(self.folder / "bin" / program), *words],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


def install_wheel(folder: Path) -> Installed:
    """Build the wheel and install it as pip does, without what it requires."""
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")], ROOT)
    [wheel] = (folder / "dist").glob("*.whl")
    environment = folder / "environment"
    _run([sys.executable, "-m", "venv", str(environment)], folder)
    [site_packages] = environment.glob("lib/python*/site-packages")
    before = _list_names(site_packages)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, "--no-index", "--no-deps", "--no-compile", str(wheel)], folder)
    return Installed(environment, site_packages, _list_names(site_packages) - before)


def link_requirements(installed: Installed, extras: Iterable[str], folder: Path) -> None:
    """Put into ``folder`` what the installed wheel requires with these extras, and what that requires."""
    [metadata] = installed.site_packages.glob("schedulerlog-*.dist-info")
    wanted = _close_over(PathDistribution(metadata), frozenset(extras))
    for name in wanted:
        package = distribution(name)
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            link = folder / top
            # Packages of several distributions share folders, as google/.
            if not link.exists():
                link.symlink_to(Path(str(package.locate_file(top))))


def _close_over(project: Distribution, extras: frozenset[str]) -> set[str]:
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[Distribution, frozenset[str]]] = [(project, extras)]
    project_name = canonicalize_name(project.metadata["Name"])
    # What nothing imports, though a requirement names it, is not in the lock file.
    excluded = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]["exclude-dependencies"]
    while waiting:
        package, chosen = waiting.pop()
        for text in package.requires or ():
            requirement = Requirement(text)
            name, more = canonicalize_name(requirement.name), frozenset(requirement.extras)
            marker = requirement.marker
            applies = marker is None or any(marker.evaluate({"extra": extra}) for extra in chosen or {""})
            if applies and name not in excluded and (name, more) not in seen:
                seen.add((name, more))
                waiting.append((project if name == project_name else distribution(name), more))
    return {name for name, _ in seen} - {project_name}


def parse_answer(process: subprocess.CompletedProcess[str]) -> object:
    """Parse what a program printed as JSON."""
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def _list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _run(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
