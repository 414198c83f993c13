"""Work of the command line: servers of a folder that keep running when the command has ended."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dev.embedded.backends import KAFKA_VARIABLE, OPENSEARCH_VARIABLE, Backends
from dev.embedded.errors import EmbeddedError, NotRunningError
from dev.embedded.installed import install_jvms
from dev.embedded.jvm import read_settings
from dev.embedded.lock import ServerKind
from dev.embedded.locking import file_lock
from dev.embedded.process import ProcessId
from dev.embedded.progress import Progress
from dev.embedded.server import GRACE_SECONDS
from dev.embedded.state import ServerRecord, plan_servers, read_state, write_state
from dev.embedded.status import Status, read_status


def start(folder: Path, kinds: Sequence[ServerKind], brokers: int, progress: Progress) -> Backends:
    """Start the servers that do not run, and leave them running; raises EmbeddedError."""
    jvms = install_jvms(read_settings(os.environ), progress)
    with file_lock(folder / "lock"):
        running = Backends(folder, plan_servers(folder, read_state(folder), kinds, brokers), jvms)
        running.start(kinds)
        running.remember()
        return running


def stop(folder: Path) -> list[str]:
    """Stop all servers and return the names of those that ran. Data, logs and ports are kept for the next ``start``."""
    if not folder.is_dir():
        return []
    with file_lock(folder / "lock"):
        state = read_state(folder)
        if state is None:
            return []
        running = {
            record.name: record.process for record in state.servers if record.process and record.process.is_alive()
        }
        _stop_processes(running, folder)
        stopped = tuple(replace(record, process=None) for record in state.servers)
        write_state(folder, replace(state, servers=stopped))
        return sorted(running)


def list_statuses(folder: Path) -> list[Status]:
    """List the status of every server that was ever started in this folder."""
    return [read_status(folder, record.name, record.port, record.process) for record in _read_records(folder)]


def _read_records(folder: Path) -> tuple[ServerRecord, ...]:
    state = read_state(folder)
    return state.servers if state else ()


def build_environment(folder: Path) -> dict[str, str]:
    """Build the environment variables with which schedulerlog's services find the running servers.

    Raises NotRunningError if one of them does not run: a service would wait for an address that never answers.
    """
    servers = list_statuses(folder)
    dead = [server.name for server in servers if not server.is_up]
    if dead or not servers:
        what = f"{', '.join(dead)} not running" if dead else "nothing was started"
        raise NotRunningError(f"{what} in {folder}; start with: schedulerlog embedded up --dir {folder}")
    brokers = [f"127.0.0.1:{record.port}" for record in _read_records(folder) if record.kind == "kafka"]
    urls = [f"http://127.0.0.1:{record.port}" for record in _read_records(folder) if record.kind == "opensearch"]
    variables = {KAFKA_VARIABLE: ",".join(brokers), OPENSEARCH_VARIABLE: "".join(urls)}
    return {name: value for name, value in variables.items() if value}


def _stop_processes(running: Mapping[str, ProcessId], folder: Path) -> None:
    for process in running.values():
        # All first, so that they stop at the same time.
        process.ask_to_stop()
    stuck = [name for name, process in running.items() if not process.stop(GRACE_SECONDS)]
    if stuck:
        raise EmbeddedError(f"{', '.join(stuck)} in {folder} does not end even after SIGKILL")
