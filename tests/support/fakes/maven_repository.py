"""A Maven repository on 127.0.0.1 that misbehaves on demand."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FakeRepository:
    """``files`` by path; each of the other settings says how to misbehave, a list is used up answer by answer."""

    files: dict[str, bytes]
    url: str = ""
    statuses: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    break_after_bytes: list[int] = field(default_factory=list)
    ignores_ranges: bool = False
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def ranges(self) -> list[str | None]:
        return [requested for _, requested in self.requests]


@contextmanager
def a_repository(files: dict[str, bytes]) -> Iterator[FakeRepository]:
    repository = FakeRepository(files)
    with ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(repository)) as server:
        repository.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield repository
        finally:
            server.shutdown()
            thread.join()


def _build_handler(repository: FakeRepository) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested = self.headers.get("Range")
            repository.requests.append((self.path, requested))
            body = repository.files.get(self.path.lstrip("/"))
            if repository.statuses:
                self._answer(repository.statuses.pop(0), b"")
            elif body is None:
                self._answer(404, b"")
            elif repository.bodies:
                self._answer(200, repository.bodies.pop(0))
            elif requested and not repository.ignores_ranges:
                self._answer(206, body[int(requested.removeprefix("bytes=").removesuffix("-")) :])
            else:
                self._answer(200, body)

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if repository.break_after_bytes:
                body = body[: repository.break_after_bytes.pop(0)]
                self.close_connection = True
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    return Handler
