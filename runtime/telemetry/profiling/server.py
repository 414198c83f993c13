"""`/debug/pprof/` over plain HTTP, on threads of its own: it answers also while the event loop is stuck."""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from runtime.http.own_names import is_own
from runtime.telemetry.health import STOP_SECONDS
from runtime.telemetry.profiling import flame, heap, sampler
from runtime.telemetry.profiling.pprof import Profile, encoded

log = logging.getLogger(__name__)

LONGEST_SECONDS: Final = 600.0

INDEX: Final = """\
profile?seconds=30   CPU time, as a pprof file:  go tool pprof -http=: 'http://{address}/debug/pprof/profile?seconds=30'
flame?seconds=30     the same as text:           curl 'http://{address}/debug/pprof/flame?seconds=30'
heap                 Python's memory:            go tool pprof http://{address}/debug/pprof/heap
                     The first call begins to trace, which slows every allocation down, and waits for ?seconds=5;
                     from then on all that was allocated since is shown. heap?stop=1 ends it.
threads, goroutine   where every thread is now:  curl http://{address}/debug/pprof/threads
"""


class UnusableQueryError(ValueError):
    """One line that says what to write."""


MAX_CONNECTIONS: Final = 8
"""At once; others are hung up on."""


class ProfilingServer(ThreadingHTTPServer):
    """Answers until `close`."""

    # A profile of ten minutes must not hold up the end of the process.
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        """Raises `OSError` where the address can't be had."""
        super().__init__((host, port), _Handler)
        self.names = {host.lower()}
        self.is_busy = threading.Lock()
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        threading.Thread(target=self.serve_forever, args=(STOP_SECONDS,), name="profiling", daemon=True).start()

    @property
    def address(self) -> str:
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        # Each connection is a thread.
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, _request: Any, client_address: Any) -> None:
        # Who asks for a profile and leaves before it is done is no news.
        log.debug("a profile for %s came to nothing", client_address)

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ProfilingServer
    timeout = 10

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        answer = _ROUTES.get(parts.path)
        # A page of another site may have a browser ask: `heap` begins something, and a profile takes CPU time. Browsers
        # do not say who asks where the address has a name and no HTTPS: one that the page itself has led here.
        if self.headers.get("Sec-Fetch-Site", "none") != "none" or not is_own(
            self.headers.get("Host", ""), self.server.names
        ):
            self._reply(403, b"ask by the address itself: links from other pages are not followed\n")
            return
        if answer is None:
            self._reply(404, f"nothing is at {parts.path}; /debug/pprof/ says what there is\n".encode())
            return
        try:
            kind, content = answer(self.server, query)
        except UnusableQueryError as error:
            self._reply(400, f"{error}\n".encode())
        except BlockingIOError:
            self._reply(503, b"another profile is being taken, ask again when it is done\n")
        else:
            self._reply(200, content, kind)

    def _reply(self, status: int, content: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        log.debug(format, *args)


Answer = tuple[str, bytes]
Query = Mapping[str, str]
_TEXT: Final = "text/plain; charset=utf-8"


def _seconds(query: Query, default: float) -> float:
    text = query.get("seconds", str(default))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST_SECONDS:
        raise UnusableQueryError(f"seconds={text[:50]}: write a number above 0, at most {LONGEST_SECONDS:.0f}")
    return seconds


def _alone(server: ProfilingServer, take: Callable[[], Profile]) -> Profile:
    """Raises `BlockingIOError` while another profile is being taken: two would see each other."""
    if not server.is_busy.acquire(blocking=False):
        raise BlockingIOError
    try:
        return take()
    finally:
        server.is_busy.release()


def _index(server: ProfilingServer, _query: Query) -> Answer:
    return _TEXT, INDEX.format(address=server.address).encode()


def _cpu(server: ProfilingServer, query: Query) -> Answer:
    seconds = _seconds(query, 30)
    return "application/octet-stream", encoded(_alone(server, lambda: sampler.profile(seconds)))


def _flame(server: ProfilingServer, query: Query) -> Answer:
    seconds = _seconds(query, 30)
    found = _alone(server, lambda: sampler.profile(seconds))
    spent = sum(sample.values[-1] for sample in found.samples)
    head = f"{spent / 1e6:.1f} ms of CPU in {found.duration_ns / 1e9:.1f} s\n\n"
    return _TEXT, (head + "".join(flame.tree(found.samples))).encode(errors="replace")


def _heap(server: ProfilingServer, query: Query) -> Answer:
    if "stop" in query:
        heap.end()
        return _TEXT, b"memory is not traced any more\n"
    seconds = _seconds(query, 5)

    def take() -> Profile:
        if heap.begin() or "seconds" in query:
            time.sleep(seconds)
        return heap.profile()

    return "application/octet-stream", encoded(_alone(server, take))


def _threads(_server: ProfilingServer, _query: Query) -> Answer:
    return _TEXT, sampler.stacks().encode(errors="replace")


_ROUTES: Final[dict[str, Callable[[ProfilingServer, Query], Answer]]] = {
    "/debug/pprof/": _index,
    "/debug/pprof": _index,
    "/debug/pprof/profile": _cpu,
    "/debug/pprof/flame": _flame,
    "/debug/pprof/heap": _heap,
    "/debug/pprof/threads": _threads,
    # As Go calls it, which has goroutines where Python has threads: guides name this path.
    "/debug/pprof/goroutine": _threads,
}
