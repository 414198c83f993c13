"""An application behind the HTTP protocol that serves it, without a network: bytes in, bytes out."""

import asyncio
from collections.abc import Iterable
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from uvicorn.server import ServerState

from api.http.json_protocol import JsonProtocol

ADDRESS = "127.0.0.1", 4321


class Connection(asyncio.Transport):
    """Transport of what the protocol writes, until the client takes it. ``sent`` is set when something was written."""

    def __init__(self) -> None:
        super().__init__({"peername": ADDRESS, "sockname": ADDRESS})
        self.written, self.sent = b"", asyncio.Event()
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)
        self.sent.set()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True
        self.sent.set()

    abort = close

    def pause_reading(self) -> None:
        """Do nothing: nothing more arrives by itself."""

    resume_reading = pause_reading


class OverHttp(httpx.AsyncBaseTransport):
    """Each request on a connection of its own."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def connect(self, app: Any = None) -> tuple[JsonProtocol, Connection]:
        """Connect to the application, or to ``app`` with the ready answers of this one."""
        config = uvicorn.Config(app or self._app, http=JsonProtocol, ws="none", access_log=False, log_config=None)
        protocol, connection = JsonProtocol(config, ServerState(), {}), Connection()
        protocol.find_ready = self._app.state.ready_answer
        protocol.connection_made(connection)
        return protocol, connection

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        protocol, connection = self.connect()
        lines = [request.method.encode() + b" " + request.url.raw_path + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in request.headers.raw]
        protocol.data_received(b"\r\n".join([*lines, b"", b""]) + await request.aread())
        is_head = request.method == "HEAD"
        while (answer := _parse_answer(connection.written, is_head=is_head)) is None and not connection.is_closing():
            connection.sent.clear()
            await connection.sent.wait()
        protocol.connection_lost(None)
        assert answer, connection.written
        return answer


def _parse_answer(written: bytes, *, is_head: bool) -> httpx.Response | None:
    """Parse the answer in these bytes; None while it is not complete."""
    head, end, body = written.partition(b"\r\n\r\n")
    line, *fields = head.split(b"\r\n")
    headers = httpx.Headers([(name, value) for name, _, value in (field.partition(b": ") for field in fields)])
    is_chunked = headers.pop("transfer-encoding", "") == "chunked" and not is_head
    length = 0 if is_head else int(headers.get("content-length", 0))
    is_whole = body.endswith(b"0\r\n\r\n") if is_chunked else len(body) >= length
    content = _join_chunks(body) if is_chunked and is_whole else body
    if not (end and is_whole):
        return None
    return httpx.Response(int(line.split()[1]), headers=headers, content=content)


def _join_chunks(body: bytes) -> bytes:
    """Join a body in chunks; each has its size before it."""
    parts = []
    while body:
        size, _, remainder = body.partition(b"\r\n")
        parts.append(remainder[: int(size, 16)])
        body = remainder[int(size, 16) + 2 :]
    return b"".join(parts)
