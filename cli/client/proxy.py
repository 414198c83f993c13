"""``kubectl proxy`` on a socket that only its owner can open: many requests for one start of kubectl.

kubectl logs in, trusts certificates and finds its way through proxies, once; a request then takes milliseconds. The
proxy refuses methods that write. Where it can't run, every request starts a kubectl of its own.
"""

import http.client
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.client.kubectl import KubectlTransport, parse_kubectl_problem
from cli.client.problems import Problem, Unreachable
from cli.client.transport import TIMEOUT_SECONDS

START_SECONDS: Final = 5.0
"""Limit for the start; kubectl opens the socket within 0.2 s."""
_WRITING: Final = "^(POST|PUT|PATCH|DELETE)$"
# The shell reads from a pipe that ends with this process, however that ends; then the proxy ends too. Only the proxy
# writes to the other pipe, which ends with it.
_SCRIPT: Final = """
folder=$1; shift
trap 'kill $! 2>/dev/null; rm -f "$folder/socket"; rmdir "$folder"' EXIT
trap 'exit 1' INT TERM HUP
"$@" </dev/null 2>/dev/null &
exec >/dev/null
read -r _
"""


class ProxiedKubectl:
    """Reads paths of the API server by one proxy that is started at the first request, or before by ``start``."""

    def __init__(self, kubectl: KubectlTransport) -> None:
        self._kubectl = kubectl
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: Path | None = None
        """Socket of the proxy; None before the start, and where none can be started."""

    def start(self) -> None:
        """Start the proxy without waiting for it; does nothing where the system has no such sockets or no shell."""
        with self._lock:
            if self._process or not hasattr(socket, "AF_UNIX") or not Path("/bin/sh").exists():
                return
            # Only its owner may enter the folder: who reaches the socket reads the cluster with the user's rights.
            folder = Path(tempfile.mkdtemp(prefix="schedulerlog-"))
            self._socket = folder / "socket"
            command = self._kubectl.build_command(
                "proxy", f"--unix-socket={self._socket}", f"--reject-methods={_WRITING}"
            )
            self._process = _start_until_closed(folder, command)
            weakref.finalize(self, _close, self._process)

    def stop(self) -> None:
        """Stop the proxy; a later request starts another one."""
        with self._lock:
            process, self._process, self._socket = self._process, None, None
        if process:
            _close(process)

    def read_raw(self, path: str) -> bytes | Problem:
        """Read what the API server answers to a path, as ``kubectl get --raw`` does."""
        self.start()
        try:
            response = self._request(path)
        except TimeoutError:
            return Unreachable(f"the API server has not answered within {TIMEOUT_SECONDS} s", "Is it reachable?")
        except (OSError, http.client.HTTPException):
            response = None
            if self._process is None:
                return Unreachable("the reading was stopped", "")
        if response and response[0] == http.client.OK:
            return response[1]
        # Of an error without an answer of the API server, such as a login that failed, kubectl knows the words.
        problem = _parse_status(*response) if response else None
        return problem or self._kubectl.read_raw(path)

    def _request(self, path: str) -> tuple[int, bytes] | None:
        """Request a path; None where no proxy answers."""
        address = self._socket
        if address is None:
            return None
        if not self._wait_for_socket(address):
            # It is not waited for again: every request starts a kubectl of its own from here on.
            self._socket = None
            return None
        connection = _SocketConnection(address)
        try:
            # Without the header kubectl asks for a compressed answer and unpacks it.
            connection.putrequest("GET", path, skip_accept_encoding=True)
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _wait_for_socket(self, path: Path) -> bool:
        deadline = time.monotonic() + START_SECONDS
        # The socket is there before the proxy listens on it.
        while not _accepts(path):
            if time.monotonic() > deadline or self._process is None or _has_ended(self._process):
                return False
            time.sleep(0.005)
        return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the proxy has ended, which closes its standard output."""
    if process.stdout is None or process.stdout.closed:
        return True
    is_readable = select.select([process.stdout], [], [], 0)[0]
    return bool(is_readable) and not os.read(process.stdout.fileno(), 4096)


def _accepts(path: Path) -> bool:
    """Tell whether somebody listens on the socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
    return True


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_SECONDS)
        self.sock.connect(os.fspath(self._path))


def _start_until_closed(folder: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command that ends when the standard input of the returned process is closed."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "sh", str(folder), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C reaches this process only: a proxy that ended first would let every request start a kubectl of its own.
        process_group=0,
    )


def _close(process: subprocess.Popen[bytes]) -> None:
    """Let the proxy end, and wait until it has removed its socket."""
    if process.stdin and not process.stdin.closed:
        process.stdin.close()
    process.wait()
    if process.stdout:
        process.stdout.close()


def _parse_status(code: int, body: bytes) -> Problem | None:
    """Parse the API server's error; None for an answer of the proxy or of another server before it."""
    try:
        status = json.loads(body)
    except ValueError:
        return None
    if code == http.client.UNAUTHORIZED or not isinstance(status, dict) or status.get("kind") != "Status":
        return None
    return parse_kubectl_problem(f"Error from server ({status.get('reason')}): {status.get('message')}")
