"""``/metrics``, ``/healthz`` and ``/readyz``, answered by a thread: also while the event loop is busy or stands."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str]
"""In words, what is wrong; empty when nothing is."""

_TEXT: Final = "text/plain; charset=utf-8"


@contextmanager
def serving(port: int, registry: CollectorRegistry, alive: Check, ready: Check) -> Iterator[int]:
    """Answer on 127.0.0.1 within this context; gives the port (0 takes a free one). Raises ``OSError``."""
    with ThreadingHTTPServer(("127.0.0.1", port), _handler(registry, alive, ready)) as server:
        thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def _handler(registry: CollectorRegistry, alive: Check, ready: Check) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
            elif path in checks:
                wrong = checks[path]()
                self._answer(503 if wrong else 200, _TEXT, f"{wrong or 'ok'}\n".encode())
            else:
                self._answer(404, _TEXT, b"there are /metrics, /healthz and /readyz\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Nothing: a probe a second is no news."""

    checks = {"/healthz": alive, "/readyz": ready}
    return Handler
