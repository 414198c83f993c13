"""Builds programs from Go modules and keeps them in the user's cache: one executable with the control plane, and Helm.

A build takes minutes, so each is done once: the name of the file contains a hash of the sources, the Go version and the
flags. The file gets that name only when it is complete. One build at a time writes; others wait at a lock file. The
three gigabytes that the compiler leaves behind are deleted, because the finished file needs none of them.
"""

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from dev.embedded.control_plane.commands import Commands
from dev.embedded.control_plane.steps import NoSteps, SharedSteps, Steps
from dev.embedded.control_plane.toolchain import Go, choose_toolchain, install
from dev.embedded.download import locate_user_cache
from dev.embedded.locking import file_lock

SOURCES: Final = Path(__file__).with_name("go")
KUBERNETES_VERSION: Final = "1.36.3"
_MAJOR, _MINOR, _ = KUBERNETES_VERSION.split(".")
# Without these flags the API server would report its version as v0.0.0-master+$Format.
LINKER_FLAGS: Final = (
    "-s -w"
    f" -X k8s.io/component-base/version.gitVersion=v{KUBERNETES_VERSION}"
    f" -X k8s.io/component-base/version.gitMajor={_MAJOR} -X k8s.io/component-base/version.gitMinor={_MINOR}"
    f" -X k8s.io/client-go/pkg/version.gitVersion=v{KUBERNETES_VERSION}"
)
HELM_VERSION: Final = "3.22.0"
# The compiler need not make what the linker's ``-s -w`` leaves out.
BUILD_FLAGS: Final = ("-trimpath", "-gcflags=all=-dwarf=false", "-ldflags")
_REQUIRED_MODULE = re.compile(r"^\t\S+ v\S+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GoProgram:
    """An executable: ``package`` of the Go module in ``sources``."""

    name: str
    title: str
    sources: Path
    package: str
    linker_flags: str

    @property
    def flags(self) -> tuple[str, ...]:
        return (*BUILD_FLAGS, self.linker_flags)


CONTROL_PLANE: Final = GoProgram("control-plane", "Kubernetes", SOURCES, ".", LINKER_FLAGS)
# Its module names Helm as a tool, so that go.sum pins what it is made of.
HELM: Final = GoProgram(
    "helm", "Helm", SOURCES.with_name("go_helm"), "helm.sh/helm/v3/cmd/helm",
    f"-s -w -X helm.sh/helm/v3/internal/version.version=v{HELM_VERSION}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Builder:
    """One build: ``cache`` holds all its files, ``go`` compiles, ``environment`` is the caller's."""

    cache: Path
    go: Go
    environment: Mapping[str, str]
    program: GoProgram = CONTROL_PLANE

    @property
    def binary(self) -> Path:
        return self.cache / f"{self.program.name}-{self._compute_fingerprint()}"

    def build(self, steps: Steps) -> None:
        """Build ``binary`` unless it exists; raises BuildError."""
        shared = SharedSteps(steps, self.cache / "progress.json")
        on_wait = partial(steps.note, "another process is building; waiting for it")
        try:
            with file_lock(self.cache / "lock", on_wait, shared.report_builder):
                if not self.binary.is_file():
                    log = self.cache / "build.log"
                    log.unlink(missing_ok=True)
                    self._build(Commands(self.program.sources, self._go_environment(), log), shared)
                    self._delete_intermediate_files()
        finally:
            steps.stop()

    def _build(self, commands: Commands, steps: Steps) -> None:
        if not self.go.is_installed:
            install(self.go, commands, steps)
        packages = self._download(commands, steps)
        # A killed build leaves a part file, never half an executable under the final name.
        part = self.binary.with_suffix(".part")
        compiling = _Counted(steps, f"compiling {self.program.title} (packages)", len(packages))
        build = [str(self.go.executable), "build", "-v", *self.program.flags, "-o", str(part), self.program.package]
        commands.run(build, compiling.count_line)
        part.replace(self.binary)

    def _download(self, commands: Commands, steps: Steps) -> Sequence[str]:
        """Download all modules; returns the import paths of all packages."""
        modules = len(_REQUIRED_MODULE.findall((self.program.sources / "go.mod").read_text(encoding="utf-8")))
        downloading = _Counted(steps, "downloading Go modules (at most)", modules, "go: downloading ")
        return commands.run([str(self.go.executable), "list", "-deps", self.program.package], downloading.count_line)

    def _go_environment(self) -> dict[str, str]:
        """Build the environment of Go: the caller's, for its proxies and mirrors, with our flags and folders."""
        folders = {"GOCACHE": self._go_folder / "build", "GOMODCACHE": self._go_folder / "modules"}
        variables = {name: str(self.environment.get(name) or folder) for name, folder in folders.items()}
        return {
            **self.environment, **variables,
            # Rare garbage collection halves the CPU time of the compiler; without cgo the machine needs no C compiler.
            # ``readonly``: go.mod and go.sum are what was committed, or the build fails. ``modcacherw``: else the
            # module cache could not be deleted. ``local``: no other toolchain is downloaded.
            "GOGC": "800", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -modcacherw", "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }  # fmt: skip

    @property
    def _go_folder(self) -> Path:
        return self.cache / "go"

    def _delete_intermediate_files(self) -> None:
        shutil.rmtree(self._go_folder, ignore_errors=True)

    def _compute_fingerprint(self) -> str:
        files = [file for file in sorted(self.program.sources.iterdir()) if file.suffix in {".go", ".mod", ".sum"}]
        sources = [file.read_bytes() for file in files]
        others = [self.go.version, sys.platform, platform.machine(), *self.program.flags]
        digest = hashlib.sha256(b"\0".join([*sources, *(text.encode() for text in others)]))
        return digest.hexdigest()[:16]


class _Counted:
    """Reports how many of ``total`` lines that begin with ``prefix`` have come."""

    def __init__(self, steps: Steps, what: str, total: int, prefix: str = "") -> None:
        self._steps, self._what, self._total, self._prefix = steps, what, total, prefix
        self._done = 0

    def count_line(self, line: str) -> None:
        if line.startswith(self._prefix):
            self._done = min(self._done + 1, self._total)
            self._steps.report(self._what, self._done, self._total)


def ensure_installed(
    steps: Steps | None = None, environment: Mapping[str, str] = os.environ, program: GoProgram = CONTROL_PLANE
) -> Path:
    """Ensure that the executable is in the cache, and return it; builds it if it is missing. Raises BuildError."""
    cache = locate_user_cache(environment) / program.name
    # One toolchain for all, where the machine has none.
    go = choose_toolchain(environment, locate_user_cache(environment) / CONTROL_PLANE.name)
    builder = Builder(cache, go, environment, program)
    if not builder.binary.is_file():
        builder.build(steps or NoSteps())
    return builder.binary
