"""The services as child processes that never outlive the demo, however it ends."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import httpx

from embedded.ports import free_port

PR_SET_PDEATHSIG = 1
LAST_LINES = 20
SERVICE_PORTS = range(10_000, 19_000)


class ServiceError(Exception):
    """A service did not start or has died; the message ends with the last lines of its log."""


def free_ports(*names: str) -> dict[str, str]:
    """A port for each, all different; none that an outgoing connection may take while a service is started again."""
    found: dict[str, int] = {}
    for name in names:
        found[name] = free_port(SERVICE_PORTS, found.values())
    return {name: str(port) for name, port in found.items()}


def _die_with_parent() -> None:
    # The kernel ends the child even when the parent is killed and can't clean up. Linux only: elsewhere the context
    # manager below is what ends it.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Processes:
    """Starts services with ``python -m``, keeps their logs in ``folder``, and ends them in reverse order."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = os.environ | environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def run(self, name: str, *arguments: str) -> None:
        """Run a command of ours to its end; raise ``ServiceError`` unless it succeeds."""
        if self._spawn(name, arguments).wait(timeout=120):
            raise ServiceError(self._obituary(name))

    def start(self, name: str, *arguments: str, **environment: str) -> None:
        """``environment`` adds to what all processes are given."""
        self._running[name] = self._spawn(name, arguments, environment)

    def stop(self, name: str, grace_seconds: float = 10) -> int:
        """Ask a service to end, kill it after the grace; returns its exit status."""
        process = self._running.pop(name)
        process.terminate()
        try:
            return process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def kill(self, name: str) -> None:
        """End a service as a crash would (SIGKILL)."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def has_ended(self, name: str) -> bool:
        """Has the service ended by itself? Then its name is free again."""
        if self._running[name].poll() is None:
            return False
        del self._running[name]
        return True

    def is_running(self, name: str) -> bool:
        return name in self._running and self._running[name].poll() is None

    def running(self) -> set[str]:
        """The names of the services that run."""
        return {name for name in self._running if self.is_running(name)}

    def check(self) -> None:
        """Raise ``ServiceError`` when a service is no longer running."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise ServiceError(self._obituary(name))

    def wait_ready(self, name: str, url: str, timeout_seconds: float = 60) -> None:
        """Return when ``url`` answers 200; raise ``ServiceError`` when the service dies or does not get ready."""
        deadline = time.monotonic() + timeout_seconds
        answer = "nothing"
        while time.monotonic() < deadline:
            self.check()
            try:
                response = httpx.get(url, timeout=2)
            except httpx.TransportError as error:
                answer = str(error)
            else:
                if response.status_code == httpx.codes.OK:
                    return
                answer = f"{response.status_code} {response.text[:500]}"
            time.sleep(0.1)
        raise ServiceError(f"{name} did not get ready in {timeout_seconds:.0f} s; {url} says: {answer}")

    def _spawn(
        self, name: str, arguments: tuple[str, ...], environment: Mapping[str, str] = MappingProxyType({})
    ) -> subprocess.Popen[bytes]:
        with self.log(name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env=self._environment | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the demo, which ends its services in their order
                preexec_fn=_die_with_parent,
            )

    def _obituary(self, name: str) -> str:
        lines = self.log(name).read_text(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join([f"{name} has ended. The last lines of {self.log(name)}:", *lines])
