"""The services as child processes that never outlive the demo, even if it is killed."""

import os
import ssl
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from dev.embedded.ports import SERVICE_PORTS, find_free_port
from dev.embedded.process import Child, ParentWatch, read_last_lines, spawn

COMMAND_SECONDS = 120


class ServiceError(Exception):
    """A service did not start or has died; the message ends with the last lines of its log."""


def find_free_ports(*names: str) -> dict[str, str]:
    """Find a different free port for each name, below the range from which the kernel serves outgoing connections."""
    ports: dict[str, int] = {}
    for name in names:
        ports[name] = find_free_port(SERVICE_PORTS, ports.values())
    return {name: str(port) for name, port in ports.items()}


class Processes:
    """Starts services with ``python -m``, keeps their logs in ``folder``, and ends them in reverse order."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self.environment = os.environ | environment
        self._running: dict[str, Child] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._parent_watch = ParentWatch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)
        self._parent_watch.close()

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def run(self, name: str, *arguments: str, **environment: str) -> None:
        """Run a command of this project to its end; raises ``ServiceError`` unless it succeeds."""
        if self.spawn(name, arguments, environment).popen.wait(COMMAND_SECONDS):
            raise self._build_error(name)

    def start(self, name: str, *arguments: str, **environment: str) -> None:
        """Start a service; it gets ``environment`` in addition to the variables that all services get."""
        if self.is_running(name):
            raise ValueError(f"{name} runs already: stop it first, or name this one differently")
        self._running[name] = self.spawn(name, arguments, environment)

    def stop(self, name: str, grace_seconds: float = 10) -> int:
        """Ask a service to end, kill it after ``grace_seconds``; returns its exit status."""
        child = self._running.pop(name)
        child.id.stop(grace_seconds)
        return child.popen.wait()

    def kill(self, name: str) -> None:
        """End a service as a crash would (SIGKILL)."""
        child = self._running.pop(name)
        child.id.kill()
        child.popen.wait()

    def get_pid(self, name: str) -> int:
        return self._running[name].id.pid

    def release_if_ended(self, name: str) -> bool:
        """Release the name of a service that has ended by itself, for another start; return whether it has ended."""
        if self.is_running(name):
            return False
        del self._running[name]
        return True

    def is_running(self, name: str) -> bool:
        return name in self._running and self._running[name].exit_status() is None

    def list_running(self) -> set[str]:
        """List the names of the services that run."""
        return {name for name in self._running if self.is_running(name)}

    def check(self) -> None:
        """Check that all services run. Raises ``ServiceError``."""
        for name in self._running:
            if not self.is_running(name):
                raise self._build_error(name)

    def wait_ready(self, name: str, url: str, timeout_seconds: float = 180, authority: Path | None = None) -> None:
        """Return when ``url`` answers 200; raises ``ServiceError`` if the service dies or does not become ready.

        ``authority``: of the certificate, where the URL is one of HTTPS.
        """
        verify = ssl.create_default_context(cafile=authority) if authority else True
        deadline = time.monotonic() + timeout_seconds
        answer = "nothing"
        with httpx.Client(timeout=2, verify=verify) as client:
            while time.monotonic() < deadline:
                self.check()
                try:
                    response = client.get(url)
                except httpx.TransportError as error:
                    answer = str(error)
                else:
                    if response.status_code == httpx.codes.OK:
                        return
                    answer = f"{response.status_code} {response.text[:500]}"
                time.sleep(0.1)
        raise ServiceError(
            f"{name} was not ready after {timeout_seconds:.0f} s; {url} answers: {answer}. Its log: {self.log(name)}"
        )

    def spawn(self, name: str, arguments: tuple[str, ...], environment: dict[str, str]) -> Child:
        """Spawn the process of these arguments, which writes into the log of ``name``."""
        # Installed, a service cannot be started by the name of its package, which only this command finds. A program of
        # a benchmark or a test is a module with a dot in its name, and no service.
        module = () if "." in arguments[0] else ("schedulerlog",)
        command = [sys.executable, "-m", *module, *arguments]
        return spawn(command, self.log(name), self.environment | environment, self._parent_watch)

    def _build_error(self, name: str) -> ServiceError:
        return ServiceError(
            "\n".join([f"{name} has ended. The last lines of {self.log(name)}:", *read_last_lines(self.log(name))])
        )
