"""One server process from its start to its end, whatever it serves.

``KafkaBroker``, ``OpenSearchNode`` and the programs of the control plane define how to prepare, what to run, and when
the server is ready; this module starts, watches, pauses and stops it.
"""

import os
import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from dev.embedded.errors import NotRunningError, PortTakenError, ServerError
from dev.embedded.jvm import build_java_environment
from dev.embedded.lock import ServerKind
from dev.embedded.ports import is_free
from dev.embedded.process import Child, ParentWatch, ProcessId, read_last_lines, spawn

# OpenSearch takes 7 to 18 s on two cores that are otherwise idle.
START_SECONDS: Final = 300.0
# Three brokers that are stopped at once wait in vain for the majority that has just stopped. SIGKILL costs no data.
GRACE_SECONDS: Final = 8.0
_POLL_SECONDS: Final = 0.05
_BUSY_PORT_SIGNS: Final = (
    "Address already in use",
    "address already in use",
    "BindException",
    "BindHttpException",
    "BindTransportException",
)


class Server(ABC):
    """A server with a folder (``home``: data, configuration, log) and a port that do not change over restarts."""

    def __init__(
        self, name: str, home: Path, port: int, parent_watch: ParentWatch | None, process: ProcessId | None = None
    ) -> None:
        self.name = name
        self.home = home
        self.port = port
        self.log = home / "server.log"
        self._parent_watch = parent_watch
        self._process = process
        self._child: Child | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Write configuration and format storage; called before every start."""

    @abstractmethod
    def build_command(self) -> list[str]:
        """Build the command line of the server."""

    @abstractmethod
    def is_answering(self) -> bool:
        """Tell whether a client can do real work with this server now; never raises."""

    def build_environment(self) -> dict[str, str]:
        """Build the environment variables of the server."""
        return dict(os.environ)

    @property
    def process(self) -> ProcessId | None:
        """The process last started, alive or not."""
        return self._process

    @property
    def pid(self) -> int:
        """The process id; raises NotRunningError."""
        return self._require_process().pid

    @property
    def is_alive(self) -> bool:
        if self._child is not None:
            self._child.exit_status()  # collects a zombie
        return self._process is not None and self._process.is_alive()

    def start(self) -> None:
        """Start and wait until it is ready; nothing if it runs. Raises ServerError with the log's last lines."""
        if not self.is_alive:
            self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start without waiting; raises PortTakenError if another process listens on its port."""
        if not is_free(self.port):
            raise PortTakenError(
                f"{self.name}: port {self.port} on 127.0.0.1 is taken by another process", self.log, []
            )
        self.home.mkdir(parents=True, exist_ok=True)
        # Otherwise an error of this run could show the last lines of the run before.
        self.log.unlink(missing_ok=True)
        self.prepare()
        self._child = spawn(self.build_command(), self.log, self.build_environment(), self._parent_watch)
        self._process = self._child.id

    def wait_until_ready(self, timeout_seconds: float = START_SECONDS) -> None:
        """Wait until the server is ready. Raises ServerError when it dies or takes longer."""
        deadline = time.monotonic() + timeout_seconds
        # Work and not only a listening port: both servers accept connections before they can store anything.
        while not self.is_answering():
            if not self.is_alive:
                raise self._build_failure(f"{self.name} died while starting{self._describe_exit()}")
            if time.monotonic() > deadline:
                raise self._build_failure(f"{self.name} (pid {self.pid}) was not ready after {timeout_seconds:.0f} s")
            time.sleep(_POLL_SECONDS)

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop it: SIGTERM, and SIGKILL if it still runs after ``grace_seconds``; do nothing if it does not run."""
        if self._process:
            self._finish_end(self._process.stop(grace_seconds))

    def ask_to_stop(self) -> None:
        """Ask it to stop (SIGTERM) without waiting."""
        if self._process:
            self._process.ask_to_stop()

    def kill(self) -> None:
        """Kill it (SIGKILL), then wait for the end; its data remain as they are."""
        if self._process:
            self._finish_end(self._process.kill())

    def pause(self) -> None:
        """Pause it (SIGSTOP): connections remain open, and it answers no request."""
        self._require_process().pause()

    def resume(self) -> None:
        """Resume it (SIGCONT) after a pause."""
        self._require_process().send(signal.SIGCONT)

    def measure_memory_mib(self) -> float | None:
        """Measure its resident memory in MiB; None when it does not run."""
        return self._process.measure_memory_mib() if self._process else None

    def _require_process(self) -> ProcessId:
        if self._process is None or not self.is_alive:
            raise NotRunningError(f"{self.name} does not run; start it first")
        return self._process

    def _finish_end(self, has_ended: bool) -> None:
        if not has_ended:
            raise self._build_failure(f"{self.name} (pid {self.pid}) does not end even after SIGKILL")
        if self._child is not None:
            # Collects the exit status; else it remains a zombie until we end.
            self._child.popen.wait()

    def _describe_exit(self) -> str:
        status = self._child.exit_status(timeout_seconds=2) if self._child else None
        if status is None:
            return ""
        return f" (exit status {status})" if status >= 0 else f" (by {signal.Signals(-status).name})"

    def _build_failure(self, what: str) -> ServerError:
        tail = read_last_lines(self.log, count=1000)
        lines = tail[-20:]
        busy = [line for line in tail if any(sign in line for sign in _BUSY_PORT_SIGNS)]
        # Kafka's other threads may still print their whole configuration below the line that names the port.
        if busy and busy[-1] not in lines:
            lines.insert(0, busy[-1])
        return PortTakenError(what, self.log, lines) if busy else ServerError(what, self.log, lines)


class JavaServer(Server):
    """A server of one of the lock file's kinds, run by Java."""

    kind: ServerKind

    def build_environment(self) -> dict[str, str]:
        return build_java_environment(os.environ)
