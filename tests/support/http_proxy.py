"""An HTTP proxy before a real server: it records what passes, and fails as a test asks.

It speaks plain HTTP to its client and hands every request on to the server, so the answers are the server's own unless
a test replaces or changes them.
"""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

import httpx

from schemas.json_types import Json

_OF_ONE_CONNECTION = ("connection", "content-length", "transfer-encoding", "content-encoding", "accept-encoding")


class Passed(NamedTuple):
    method: str
    path: str
    sent: bytes
    answered: bytes
    """Empty for one that the proxy has not handed on."""

    def parse_json(self) -> Any:
        return json.loads(self.sent)


class Replaced(NamedTuple):
    """Answer in place of the server's."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True
    # A handler may be held; its client has gone by then.
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: a client that hung up is what some tests are about."""


class HttpProxy:
    """Listens on 127.0.0.1; ``url`` is where clients reach the server at ``target``."""

    def __init__(self, target: str, verify: ssl.SSLContext | bool = True) -> None:
        self.passed: list[Passed] = []
        self.replace: Callable[[Passed], Replaced | None] = lambda _: None
        self.change: Callable[[Passed, Json], Json] | None = None
        """From the server's answer to the one that is sent."""
        self.is_down = False
        self.max_at_once = 0
        """The most requests that waited for their answers at the same time."""
        self._at_once, self._lock = 0, threading.Lock()
        self._free = threading.Event()
        self._free.set()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        self._client = httpx.Client(base_url=target, verify=verify, trust_env=False, timeout=60, limits=limits)
        self._server = _Server(("127.0.0.1", 0), self._build_handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._free.set()
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Inside, every answer waits."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def reset(self) -> None:
        """Hand everything on again, as it is; what passed so far is forgotten."""
        self.replace, self.change, self.is_down, self.max_at_once = (lambda _: None), None, False, 0
        self.passed.clear()

    def _build_handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

            def handle_request(self) -> None:
                proxy._serve(self)

        for method in ("GET", "POST", "PUT", "HEAD", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.handle_request)
        return Handler

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        sent = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        passed = Passed(handler.command, handler.path, sent, b"")
        with self._counted():
            self._free.wait()
            answer = self._answer(handler, passed)
        if answer is None:
            handler.close_connection = True
            with contextlib.suppress(OSError):
                handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(answer.status)
        for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(answer.body)

    def _answer(self, handler: BaseHTTPRequestHandler, passed: Passed) -> Replaced | None:
        """Answer a request; None: hang up."""
        if self.is_down:
            return None
        if replaced := self.replace(passed):
            self.passed.append(passed)
            return replaced
        headers = [(name, value) for name, value in handler.headers.items() if name.lower() not in _OF_ONE_CONNECTION]
        headers = [(name, value) for name, value in headers if name.lower() != "host"]
        response = self._client.request(passed.method, passed.path, content=passed.sent or None, headers=headers)
        body = response.content
        if self.change:
            body = json.dumps(self.change(passed, json.loads(body))).encode()
        self.passed.append(passed._replace(answered=response.content))
        headers_of_response = [
            (name, value) for name, value in response.headers.multi_items() if name not in _OF_ONE_CONNECTION
        ]
        return Replaced(response.status_code, body, tuple(headers_of_response))

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._at_once += 1
            self.max_at_once = max(self.max_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1
