"""Services without the second of CPU that Python takes to import them: forked from a process that has imported them.

The suite starts some 300 of them. ``Forked("pipeline", "worker", ...)`` is what ``subprocess.Popen`` is for
``python -m pipeline worker ...``; ``ForkedProcesses`` is what ``Processes`` is. A service runs from its ``__main__``,
with the arguments, environment and files that it is given, in a process of its own that can be killed; only its
imports are shared. It ends when the program that started it ends, as with a parent watch.

Tests about starting a service, or about what it imports, start it as a user does.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

from dev.demo.processes import Processes
from dev.embedded.process import Child, ProcessId, read_start_time

PRELOADED: Final = (
    "api.server", "ingest.commands.logs", "ingest.commands.services", "pipeline.admin.provision",
    "pipeline.alerts.process", "pipeline.index.process", "pipeline.kube_events.process",
    "pipeline.placements.process", "pipeline.worker.process", "scheduler.serve_command",
)  # fmt: skip
"""Modules that the services import when they are called; never their ``__main__``, which runs in each process."""

_FILES: Final = 4
"""Handed over with each request: where the answers go, and the standard input, output and errors."""
_LENGTH: Final = struct.Struct("!I")
_STATUS: Final = struct.Struct("!i")


class Forked(subprocess.Popen[Any]):
    """``subprocess.Popen([sys.executable, "-m", *arguments], ...)``, forked. ``wait`` and ``poll`` are as there."""

    def __init__(
        self,
        *arguments: str,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
        env: Mapping[str, str] | None = None,
        text: bool = False,
    ) -> None:
        self.args, self.returncode, self.stdin = arguments, None, None
        self._waiting = threading.Lock()
        self._answers, theirs = socket.socketpair()
        with contextlib.ExitStack() as stack, theirs, open(os.devnull) as nothing:  # noqa: PTH123
            out, self.stdout = _open_file(stdout, sys.stdout, text, stack)
            errors, self.stderr = (
                (out, None) if stderr == subprocess.STDOUT else _open_file(stderr, sys.stderr, text, stack)
            )
            files = [theirs.fileno(), nothing.fileno(), out, errors]
            _get_server().send({"arguments": arguments, "environment": dict(env or os.environ)}, files)
        self.pid = _STATUS.unpack(_receive(self._answers, _STATUS.size))[0]

    def poll(self) -> int | None:
        # As Popen's: while another thread waits, that one learns first how it ended.
        if self._waiting.acquire(blocking=False):
            try:
                self._wait(0)
            except subprocess.TimeoutExpired:
                pass
            finally:
                self._waiting.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._waiting:
            return self._wait(timeout)

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            status: int = _STATUS.unpack(_receive(self._answers, _STATUS.size))[0]
            self._answers.close()
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            # It may have ended, and its end be on the way here.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:  # noqa: A002
        """Read what the process has written to its one pipe, when it has ended."""
        if input is not None or (self.stdout and self.stderr):
            raise NotImplementedError("two pipes at once: give one of them a file")
        written: list[Any] = [None, None]
        for index, file in enumerate((self.stdout, self.stderr)):
            if file:
                with file:
                    written[index] = file.read()
        self.wait(timeout)
        return written[0], written[1]

    def __del__(self, *_: Any) -> None:
        """Do nothing: the server reaps the process, so there is no child of this one to be warned of."""


class ForkedProcesses(Processes):
    """``Processes`` whose services are forked."""

    def spawn(self, name: str, arguments: tuple[str, ...], environment: dict[str, str]) -> Child:
        if "LD_PRELOAD" in environment:
            # What is preloaded comes before Python.
            return super().spawn(name, arguments, environment)
        module = () if "." in arguments[0] else ("schedulerlog",)
        with self.log(name).open("ab") as log:
            forked = Forked(*module, *arguments, stdout=log, stderr=log, env=self.environment | environment)
        return Child(ProcessId(forked.pid, read_start_time(forked.pid) or "ended"), forked)


def _open_file(
    requested: IO[Any] | int | None, inherited: IO[Any], text: bool, stack: contextlib.ExitStack
) -> tuple[int, IO[Any] | None]:
    """Open the file that the process gets, and the end of the pipe that remains here."""
    if requested is None:
        return inherited.fileno(), None
    if requested == subprocess.PIPE:
        reading, writing = os.pipe()
        stack.callback(os.close, writing)
        return writing, open(reading, "r" if text else "rb")  # noqa: PTH123
    return requested if isinstance(requested, int) else requested.fileno(), None


class _Server:
    """The process that has imported everything; it ends, with all that it forked, when this one does."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.support.harness.forked", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=Path(__file__).parents[3])
        self._sending = threading.Lock()
        atexit.register(self._end)

    def send(self, request: dict[str, Any], files: list[int]) -> None:
        body = json.dumps(request).encode()
        with self._sending:
            socket.send_fds(self._requests, [_LENGTH.pack(len(body))], files)
            self._requests.sendall(body)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait(60)


@functools.cache
def _get_server() -> _Server:
    return _Server()


def _receive(connection: socket.socket, size: int) -> bytes:
    """Receive so many bytes. Raises EOFError where the other side has ended."""
    received = b""
    while len(received) < size:
        if not (part := connection.recv(size - len(received))):
            raise EOFError("the server of forked services has ended")
        received += part
    return received


def _serve(requests: socket.socket) -> None:
    for module in PRELOADED:
        import_module(module)
    # What is there now is never garbage: its pages stay shared.
    gc.collect()
    gc.freeze()
    while True:
        head, files, _, _ = socket.recv_fds(requests, _LENGTH.size, _FILES)
        if not head:
            break
        request = json.loads(_receive(requests, _LENGTH.unpack(head)[0]))
        if not os.fork():
            requests.close()
            return _keep(request, files)
        for file in files:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    # Waited for, so that `time` counts what they took.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    return None


def _keep(request: dict[str, Any], files: list[int]) -> None:
    """Fork the service, report its process id and how it ended; kill it when who asked for it has ended."""
    ended, is_alive = os.pipe()
    child = os.fork()
    if not child:
        # `is_alive` remains open until the service ends, however it ends.
        os.close(ended)
        return _become(request, files)
    for file in (is_alive, *files[1:]):
        os.close(file)
    with socket.socket(fileno=files[0]) as answers:
        answers.sendall(_STATUS.pack(child))
        if answers.fileno() in select.select([answers.fileno(), ended], [], [])[0]:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        with contextlib.suppress(OSError):
            answers.sendall(_STATUS.pack(status))
    os._exit(0)


def _become(request: dict[str, Any], files: list[int]) -> None:
    os.setsid()
    for target, file in enumerate(files[1:]):
        os.dup2(file, target)
    for file in files:
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    # Python 3.11 leaves the main thread the id of the parent's, by which a profile finds its CPU time.
    main: Any = threading.main_thread()
    main._set_native_id()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    sys.argv = request["arguments"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
