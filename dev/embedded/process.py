"""Operating system processes, identified by process id *and* start time.

The system reuses process ids, so nothing here signals a process whose start time differs from the recorded one.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WATCH_SCRIPT: Final = Path(__file__).with_name("parent_death_watch.py")
KILL_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process id, and the start time (as the system spells it) that distinguishes it from a reused id."""

    pid: int
    started: str

    def is_alive(self) -> bool:
        """Tell whether this process runs; a zombie does not count as running."""
        return read_start_time(self.pid) == self.started

    def send(self, number: signal.Signals) -> None:
        """Signal it; does nothing if it has ended."""
        if self.is_alive():
            # It may end between the check and the signal.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait_for_end(self, timeout_seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended within that time."""
        deadline = time.monotonic() + timeout_seconds
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def pause(self) -> None:
        """Pause the process (SIGSTOP), and return when all its threads stand still: on a busy machine some run on for a
        while."""
        self.send(signal.SIGSTOP)
        deadline = time.monotonic() + KILL_SECONDS
        while _runs(self.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def ask_to_stop(self) -> None:
        """Ask the process to stop (SIGTERM) without waiting."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)  # a paused process receives SIGTERM only when it is resumed

    def stop(self, grace_seconds: float) -> bool:
        """Stop the process: SIGTERM, then SIGKILL if it still runs after ``grace_seconds``; return whether it has
        ended."""
        self.ask_to_stop()
        return self.wait_for_end(grace_seconds) or self.kill()

    def kill(self) -> bool:
        """Kill the process (SIGKILL); return whether it has ended. Only a process that is stuck in the kernel has
        not."""
        self.send(signal.SIGKILL)
        return self.wait_for_end(KILL_SECONDS)

    def measure_memory_mib(self) -> float | None:
        """Measure the resident memory in MiB; None when the process has ended."""
        resident_kib = _read_resident_kib(self.pid)
        return resident_kib / 1024 if resident_kib is not None and self.is_alive() else None


def _runs(pid: int) -> bool:
    """Tell whether a thread of it is not stopped; False if the system shows no threads."""
    with contextlib.suppress(OSError):
        stats = [file.read_text(errors="replace") for file in Path(f"/proc/{pid}/task").glob("*/stat")]
        return any(stat.rpartition(")")[2].split()[0] not in ("T", "t", "Z", "X") for stat in stats)
    # A thread has ended meanwhile, or there is no such folder.
    return Path(f"/proc/{pid}/task").exists()


def read_start_time(pid: int) -> str | None:
    """Read the start time of the process, in a form that does not change while it runs; None without such a process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _ask_start_time(pid)
    # The second field is the name in parentheses and may hold spaces and parentheses itself: proc_pid_stat(5).
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in "ZX" else fields[18]


def _read_resident_kib(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        columns = "" if Path("/proc/self/status").exists() else _run_ps(pid, "rss")
        return int(columns) if columns else None
    sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(sizes[0]) if sizes else None


def _ask_start_time(pid: int) -> str | None:
    state, _, started = _run_ps(pid, "stat,lstart").strip().partition(" ")
    return started.strip() if state and not state.startswith("Z") else None


def _run_ps(pid: int, columns: str) -> str:
    headless = [f"{column}=" for column in columns.split(",")]
    command = ["ps", "-p", str(pid), *(option for column in headless for option in ("-o", column))]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


class ParentWatch:
    """Kills its children when this process dies: it holds the pipe that ``parent_death_watch`` waits for.

    The kernel closes the pipe when this process ends; ``close`` kills the children as well.
    """

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()

    def build_command(self, command: Sequence[str]) -> list[str]:
        """Build the command line that runs ``command`` under watch; pass it the descriptors ``inherited``."""
        return [sys.executable, "-I", "-S", str(WATCH_SCRIPT), str(self._read_end), *command]

    @property
    def inherited(self) -> tuple[int, ...]:
        return (self._read_end,)

    def close(self) -> None:
        os.close(self._read_end)
        os.close(self._write_end)


@dataclass(slots=True)
class Child:
    """A process that we started: ``id`` to find it again, ``popen`` to collect its exit status."""

    id: ProcessId
    popen: subprocess.Popen[bytes]

    def exit_status(self, timeout_seconds: float = 0) -> int | None:
        """Return the exit status: None while it runs; negative is the number of the signal that ended it.

        The system may report the exit status a moment after the process was seen to be dead.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(timeout_seconds)
        return self.popen.poll()


def spawn(command: Sequence[str], log: Path, environment: Mapping[str, str], parent_watch: ParentWatch | None) -> Child:
    """Start a command in a session of its own, its output appended to ``log``; with a parent watch it dies with us.

    In its own session it does not receive the Ctrl-C of a terminal: its starter stops it in order.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        popen = subprocess.Popen(
            parent_watch.build_command(command) if parent_watch else command,
            # A server that reads the terminal would take what its user types.
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            pass_fds=parent_watch.inherited if parent_watch else (),
            start_new_session=True,
        )
    # A process that has died already is a zombie, for which there is no start time.
    return Child(ProcessId(popen.pid, read_start_time(popen.pid) or "ended"), popen)


def read_last_lines(file: Path, count: int = 20) -> list[str]:
    """Read the last lines of a log, each cut to a readable length; empty without such a file."""
    try:
        with file.open("rb") as opened:
            # A log may have gigabytes; twenty lines are in its last 64 KiB.
            opened.seek(max(0, file.stat().st_size - 64 * 1024))
            lines = opened.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [line[:400] for line in lines[-count:]]


def read_beginning(file: Path, limit_bytes: int = 1 << 20) -> str:
    """Read the beginning of a log; empty without such a file."""
    try:
        with file.open("rb") as opened:
            return opened.read(limit_bytes).decode(errors="replace")
    except FileNotFoundError:
        return ""
