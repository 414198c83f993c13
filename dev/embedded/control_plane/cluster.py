"""The control plane of one folder as one object, whose programs are started and stopped in order.

``control_plane()`` is for programs: what it starts ends with the program, even if that is killed. The command line uses
the same ``ControlPlane`` without a parent watch (``dev.embedded.control_plane.folder``).
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx
from rich.console import Console

from dev.embedded.control_plane.build import ensure_installed
from dev.embedded.control_plane.credentials import Credentials
from dev.embedded.control_plane.programs import (
    NO_ALPHA,
    AlphaFeatures,
    ApiServer,
    ControllerManager,
    Etcd,
    KubeScheduler,
    Kwok,
    Program,
)
from dev.embedded.control_plane.state import NAMES, ProgramName, ProgramRecord, create_records, write_records
from dev.embedded.control_plane.steps import create_steps
from dev.embedded.errors import PortTakenError
from dev.embedded.process import ParentWatch

CORE: Final[tuple[ProgramName, ...]] = ("etcd", "kube-apiserver", "kube-controller-manager")
PORT_ATTEMPTS: Final = 5


class ControlPlane:
    """etcd, kube-apiserver and controllers of a folder; kube-scheduler and kwok if they are asked for."""

    def __init__(
        self,
        folder: Path,
        binary: Path,
        records: Sequence[ProgramRecord],
        parent_watch: ParentWatch | None,
        alpha: AlphaFeatures = NO_ALPHA,
    ) -> None:
        self.folder = folder
        self.binary = binary
        self.credentials = Credentials(folder / "credentials")
        self._parent_watch, self._alpha = parent_watch, alpha
        self._records = {record.name: record for record in records}
        self._make_programs({})

    @property
    def url(self) -> str:
        """Base URL of the API server."""
        return self.api_server.url

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; it contains the CA and the token."""
        return self.credentials.locate_kubeconfig("admin")

    @property
    def ca(self) -> Path:
        """The PEM file with which clients check the API server's certificate."""
        return self.credentials.ca

    @property
    def admin_token(self) -> str:
        """A bearer token of the group system:masters."""
        return self.credentials.read_token("admin")

    @property
    def programs(self) -> dict[ProgramName, Program]:
        """All programs, in the order in which they start."""
        return {
            "etcd": self.etcd,
            "kube-apiserver": self.api_server,
            "kube-controller-manager": self.controller_manager,
            "kube-scheduler": self.scheduler,
            "kwok": self.kwok,
        }

    def start(self, names: Sequence[ProgramName] = CORE) -> None:
        """Start those of these programs that do not run, each when the one before is ready.

        If another process has taken a port, other ports are chosen, as long as no program of the folder runs. Raises
        ServerError after killing all of them.
        """
        self.credentials.write()
        # Programs that run know the others' ports from their flags and kubeconfigs.
        may_move = not any(program.is_alive for program in self.programs.values())
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            try:
                self._start(names)
            except PortTakenError:
                self.kill()
                if not (may_move and attempts_left):
                    raise
                # All ports move together: between choosing and listening any of them may be taken.
                self._records = {record.name: record for record in create_records()}
                self._make_programs(self.scheduler.configuration)
            except BaseException:
                self.kill()
                raise
            else:
                return

    def start_scheduler(self, configuration: Mapping[str, Any]) -> KubeScheduler:
        """Start kube-scheduler with a KubeSchedulerConfiguration, replacing one that runs; wait until it schedules.

        ``apiVersion``, ``kind``, ``clientConnection`` and ``leaderElection`` (off) are filled in where missing.
        Raises ServerError with the last lines of its log if it refuses the configuration.
        """
        # kube-scheduler reads its configuration only once.
        self.scheduler.stop()
        self.scheduler.configuration = configuration
        self.scheduler.start()
        return self.scheduler

    def open_client(self, user: str = "admin") -> httpx.Client:
        """Open an HTTP client of the API server, as this user; the caller closes it."""
        return self.api_server.open_client(user)

    def run_kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as the administrator and return its output; raises subprocess.CalledProcessError with its
        stderr."""
        command = [str(self.binary), "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, ["kubectl", *arguments], done.stdout, done.stderr)
            # CalledProcessError's own text shows only the exit status.
            error.add_note(done.stderr)
            raise error
        return done.stdout

    def stop(self) -> None:
        """Stop all, the last started first."""
        for program in reversed(self.programs.values()):
            program.stop()

    def kill(self) -> None:
        """Kill all programs (SIGKILL)."""
        for program in reversed(self.programs.values()):
            program.kill()

    def list_records(self) -> list[ProgramRecord]:
        """List the records for the state file."""
        return [replace(self._records[name], process=program.process) for name, program in self.programs.items()]

    def remember(self) -> None:
        """Write the state file, so that the next command finds the programs that run."""
        write_records(self.folder, self.list_records())

    def _start(self, names: Sequence[ProgramName]) -> None:
        self.credentials.write_kubeconfigs(self.url)
        for name in (name for name in NAMES if name in names):
            program = self.programs[name]
            if not program.is_alive:
                program.launch()
                # After each program and not at the end: a kill in between must not leave a process that ``down`` does
                # not know.
                self.remember()
            program.wait_until_ready()

    def _make_programs(self, scheduler_configuration: Mapping[str, Any]) -> None:
        files = self.credentials
        self.etcd = Etcd(*self._list_arguments("etcd"), peer_port=self._records["etcd"].peer_port)
        self.api_server = ApiServer(
            *self._list_arguments("kube-apiserver"), etcd=self.etcd, credentials=files, alpha=self._alpha
        )
        self.controller_manager = ControllerManager(
            *self._list_arguments("kube-controller-manager"), api_server=self.api_server, credentials=files
        )
        self.scheduler = KubeScheduler(
            *self._list_arguments("kube-scheduler"),
            credentials=files,
            configuration=scheduler_configuration,
            alpha=self._alpha,
        )
        self.kwok = Kwok(*self._list_arguments("kwok"), credentials=files)

    def _list_arguments(self, name: ProgramName) -> tuple[Any, ...]:
        record = self._records[name]
        return record.name, self.folder / record.name, record.port, self.binary, self._parent_watch, record.process


@contextmanager
def control_plane(
    folder: Path | None = None, names: Sequence[ProgramName] = CORE, alpha: AlphaFeatures = NO_ALPHA
) -> Iterator[ControlPlane]:
    """A Kubernetes control plane that runs as long as the ``with`` block, and never longer than this process.

    It runs in a new folder below ``folder`` or the system's temporary folder, which is removed at the end. The first
    call on a machine builds the programs, which takes minutes; if another process builds them, it waits for that.
    ``alpha``: features that are on although they are off by default.

    Raises BuildError, ServerError.
    """
    binary = ensure_installed(create_steps(Console(stderr=True)))
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="schedulerlog-kubernetes-", dir=folder)).resolve()
    parent_watch = ParentWatch()
    try:
        cluster = ControlPlane(home, binary, create_records(), parent_watch, alpha)
        try:
            cluster.start(names)
            yield cluster
        finally:
            cluster.kill()
    finally:
        parent_watch.close()
        shutil.rmtree(home, ignore_errors=True)
