"""``/metrics``, ``/healthz`` and ``/readyz``, answered by a thread: also while the event loop is busy or hangs."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from prometheus_client import CollectorRegistry

from runtime.errors import SettingError
from runtime.refused_credentials import describe_refusal
from runtime.settings.addresses import LOOPBACK, MISDIRECTED, OTHER_NAME_REFUSAL, HostPort, is_own
from runtime.telemetry.exposition import MoreText, encode_metrics, with_process

Check = Callable[[], str]
"""Check that returns the problem in words; empty when there is none."""

_TEXT: Final = "text/plain; charset=utf-8"


class _Scrape(NamedTuple):
    registry: CollectorRegistry
    more: Sequence[MoreText]


class _Checks(NamedTuple):
    alive: Check
    ready: Check
    describe_ready: Callable[[], str]
    parts: Mapping[str, Check]


SILENT_SECONDS: Final = 10.0
"""Seconds of silence after which the server closes a connection."""
MAX_CONNECTIONS: Final = 64
"""Each takes a thread. A kubelet and a Prometheus have a few of them."""
STOP_SECONDS: Final = 0.1
"""Limit of the wait for a server of a thread at the end of a process; half a second by default."""


class ServeHealth(Protocol):
    """Function that shows metrics and health of a service while its context is open."""

    def __call__(
        self, address: HostPort | None, registry: CollectorRegistry, alive: Check, ready: Check, /
    ) -> AbstractContextManager[object]: ...


def report_no_problem() -> str:
    """Report no problem: the check of a process that is alive, or ready, whenever it can answer."""
    return ""


@contextmanager
def serving(
    address: HostPort | None,
    registry: CollectorRegistry,
    alive: Check = report_no_problem,
    ready: Check = report_no_problem,
    more: Sequence[MoreText] = (),
    describe_ready: Callable[[], str] = lambda: "ok",
    parts: Mapping[str, Check] = MappingProxyType({}),
) -> Iterator[HostPort | None]:
    """Address on which this context answers, with the port that port 0 took; without an address it answers nothing.

    ``/metrics`` has the metrics of ``registry``, of ``more`` and of the process. ``describe_ready`` is the answer of
    ``/readyz`` when nothing is wrong; ``/readyz/NAME`` answers by a check of ``parts``, and ``/readyz/credentials`` by
    whether a store refuses who the process is.

    Raises ``SettingError`` if the process can't listen on the address.
    """
    if address is None:
        yield None
        return
    checks = _Checks(alive, ready, describe_ready, parts)
    with _create_server(address, _Scrape(with_process(registry), more), checks) as server:
        thread = threading.Thread(target=server.serve_forever, args=(STOP_SECONDS,), name="health", daemon=True)
        thread.start()
        try:
            # The port is read from the socket: for port 0 the kernel has chosen it.
            yield HostPort(address.host, server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


class _BoundedServer(ThreadingHTTPServer):
    """Server of at most ``MAX_CONNECTIONS``: one more replaces the oldest whose request has not arrived."""

    daemon_threads = True
    # With the five of the base class, connections that come at once are tried again by their clients, seconds later.
    request_queue_size = 128

    def __init__(self, address: HostPort, handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[socket.socket, bool] = {}
        """Open connections, the oldest first: true while an answer is written."""
        self._lock = threading.Lock()
        super().__init__((address.host, address.port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= MAX_CONNECTIONS:
                self._replace_oldest()
            self._open[request] = False
        super().process_request(request, client_address)

    def note_answering(self, connection: socket.socket, is_answering: bool) -> None:
        with self._lock:
            if connection in self._open:
                self._open[connection] = is_answering

    def _replace_oldest(self) -> None:
        silent = (connection for connection, is_answering in self._open.items() if not is_answering)
        oldest = next(silent, next(iter(self._open)))
        del self._open[oldest]
        # Its thread reads the end, and closes it.
        with suppress(OSError):
            oldest.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: clients that hang up, or that the server hangs up on, are no defect."""
        error = sys.exception()
        if not isinstance(error, OSError):
            super().handle_error(request, client_address)


def _create_server(address: HostPort, scrape: _Scrape, checks: _Checks) -> ThreadingHTTPServer:
    class HealthServer(_BoundedServer):
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

        def server_bind(self) -> None:
            # The base class also looks up the host's name in the DNS, which takes seconds where none answers.
            # A process that was restarted takes its port again while connections of the one before are in TIME_WAIT.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(address)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = address.host, self.server_address[1]

    try:
        return HealthServer(address, _create_handler(address, scrape, checks))
    except OSError as error:
        cause = error.strerror or error
        raise SettingError(f"--metrics-address: can't listen on {address}: {cause}; choose another address") from None


def _create_handler(address: HostPort, scrape: _Scrape, checks: _Checks) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # Each connection takes a thread, also that of a silent client.
        timeout = SILENT_SECONDS

        server: _BoundedServer

        def do_GET(self) -> None:
            self.server.note_answering(self.connection, True)
            self._answer_path()
            self.server.note_answering(self.connection, False)

        def _answer_path(self) -> None:
            # A scrape or a probe may be configured with parameters; none changes the answer.
            path = self.path.partition("?")[0]
            if is_local and not is_own(self.headers.get("Host", LOOPBACK), {address.host.lower()}):
                self._answer(MISDIRECTED, _TEXT, OTHER_NAME_REFUSAL.encode())
            elif path == "/metrics":
                self._answer(200, *encode_metrics(scrape.registry, self.headers.get("Accept", ""), scrape.more))
            elif path == "/healthz":
                self._report(checks.alive(), "ok")
            elif path == "/readyz":
                self._report(checks.ready(), checks.describe_ready())
            elif path == "/readyz/credentials":
                self._report(describe_refusal(), "ok")
            elif part := checks.parts.get(path.removeprefix("/readyz/")):
                self._report(part(), "ok")
            else:
                self._answer(404, _TEXT, b"there are /metrics, /healthz and /readyz\n")

        def _report(self, problem: str, otherwise: str) -> None:
            # A kubelet takes 200 to 399 as success; the text is for people.
            self._answer(503 if problem else 200, _TEXT, f"{problem or otherwise}\n".encode())

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Log nothing: a probe comes every second."""

    is_local = address.is_loopback
    return Handler
