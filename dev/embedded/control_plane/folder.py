"""Work of the command line: a control plane that keeps running when the command has ended."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dev.embedded.control_plane.build import ensure_installed
from dev.embedded.control_plane.cluster import ControlPlane
from dev.embedded.control_plane.credentials import Credentials
from dev.embedded.control_plane.state import ProgramName, ProgramRecord, create_records, read_records, write_records
from dev.embedded.control_plane.steps import Steps
from dev.embedded.errors import EmbeddedError, NotRunningError
from dev.embedded.locking import file_lock
from dev.embedded.server import GRACE_SECONDS
from dev.embedded.status import Status, read_status


def start(folder: Path, names: Sequence[ProgramName], configuration: Mapping[str, Any], steps: Steps) -> ControlPlane:
    """Start those of these programs that do not run, and leave them running; raises EmbeddedError."""
    binary = ensure_installed(steps)
    with file_lock(folder / "lock"):
        cluster = ControlPlane(folder, binary, read_records(folder) or create_records(), parent_watch=None)
        cluster.scheduler.configuration = configuration
        cluster.start(names)
        link_kubectl(folder, binary)
        return cluster


def stop(folder: Path) -> list[ProgramName]:
    """Stop all programs and return the names of those that ran; everything else is kept for the next ``start``."""
    if not folder.is_dir():
        return []
    with file_lock(folder / "lock"):
        records = read_records(folder)
        stopped = [record.name for record in reversed(records) if _stop(record, folder)]
        if records:
            # Ports are kept, so that the next ``start`` is reached at the same addresses.
            write_records(folder, [replace(record, process=None) for record in records])
        return stopped


def list_statuses(folder: Path) -> list[Status]:
    """List the status of every program that was started in this folder and not stopped since."""
    started = [record for record in read_records(folder) if record.process]
    return [read_status(folder, record.name, record.port, record.process) for record in started]


def build_environment(folder: Path) -> dict[str, str]:
    """Build ``KUBECONFIG``, and a ``PATH`` entry with kubectl; raises NotRunningError if the API server does not
    run."""
    # A kubeconfig of a server that does not run would only give puzzling connection errors.
    if not any(program.name == "kube-apiserver" and program.is_up for program in list_statuses(folder)):
        raise NotRunningError(
            f"no control plane runs in {folder}; start: schedulerlog embedded kubernetes up --dir {folder}"
        )
    kubeconfig = Credentials(folder / "credentials").locate_kubeconfig("admin")
    return {"KUBECONFIG": str(kubeconfig), "PATH": f"{folder / 'bin'}:$PATH"}


def link_kubectl(folder: Path, binary: Path) -> None:
    """Link ``bin/kubectl`` in the folder to the executable, which runs the program whose name it was called by."""
    link = folder / "bin" / "kubectl"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(binary)


def _stop(record: ProgramRecord, folder: Path) -> bool:
    """Stop it if it runs; whether it ran."""
    if not (record.process and record.process.is_alive()):
        return False
    if not record.process.stop(GRACE_SECONDS):
        raise EmbeddedError(f"{record.name} in {folder} does not end even after SIGKILL")
    return True
