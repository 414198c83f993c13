"""uvicorn's HTTP protocol with the bounds that it lacks, for every server of ours that others may reach.

A request's line and headers are bounded, and so are the bytes that a client sends before its answer. The server closes
connections of clients that send or read too slowly, and of clients that continue to send a body that was refused. Of
too many connections, it closes the ones that have kept it waiting for the longest.
"""

import asyncio
from collections.abc import Collection
from heapq import nsmallest
from http import HTTPStatus
from typing import Any, ClassVar, Final, Self, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_PIPELINED: Final = 64
"""Requests on one connection that wait for the answer to the one before. uvicorn reads on without end: 14 MB of short
requests took 600 MB. Browsers, Go's client and proxies send none before the answer.
"""
REQUEST_SECONDS: Final = 10.0
"""From the beginning of a connection, or of a request on it, to the end of the request, or of its headers. For the TLS
handshake as well (``tls_listener``), for which asyncio gives a minute.
"""
_ABOUT_A_BODY: Final = frozenset({b"content-length", b"transfer-encoding", b"expect"})


class _Answered:
    """Replacement of uvicorn's request cycle for requests that are answered at once."""

    response_complete = True
    message_event = asyncio.Event()
    """Nobody waits for it."""


_ANSWERED: Final = _Answered()


class _RefusedError(Exception):
    """Ends the parsing of a request."""


class PatientHttp(HttpToolsProtocol):
    """HTTP protocol of a server that waits for slow clients within bounds; ``refuse`` answers requests that it can't
    serve.

    ``limit_concurrency`` of uvicorn's configuration is the number of connections. uvicorn would answer 503 to everybody
    while there are more, and clients that are silent make them.
    """

    max_head_bytes: ClassVar[int] = 16 * 1024
    """Bound of a request's line and headers."""
    max_headers: ClassVar[int] = 100
    request_seconds: ClassVar[float] = REQUEST_SECONDS
    is_for_bodies: ClassVar[bool] = True
    """Inclusion of the body in ``request_seconds``; otherwise the application waits for the body without a limit."""
    reading_seconds: ClassVar[float] = 30.0
    """Seconds in which a client must read ``reading_bytes`` of an answer, or its end; the server closes slower
    connections. A watch has a shorter limit.
    """
    reading_bytes: ClassVar[int] = 16 * 1024
    linger_seconds: ClassVar[float] = 3.0
    """Seconds in which a client may finish sending a body that was answered before its end."""

    _head_bytes: int | None = 0
    """Bytes received of an incomplete head; None while none is expected."""
    _arriving_bytes: int = 0
    """Size of the bytes that are being parsed now."""
    _is_whole = True
    _since = 0.0
    """Time from which the server waits for the client to send, or to take, the next bytes."""
    _refusal: tuple[int, str] = (400, "the bytes received are not a valid HTTP request")
    _sending: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        self._expect(self.request_seconds)
        if self._max_connections and len(self.connections) > self._max_connections:
            self._make_place(self._max_connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._arriving_bytes = len(data)
        super().data_received(data)
        # Once for a request: bytes that drip in do not extend it. None for one that arrived whole, as almost all do.
        is_awaited = not self._is_whole and (self.is_for_bodies or self._head_bytes is not None)
        if is_awaited and self._sending is None:
            self._expect(self.request_seconds)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            is_too_long = self._head_bytes > self.max_head_bytes or len(self.headers or ()) > self.max_headers
            if is_too_long and not self.transport.is_closing():
                self.refuse(431, "the request's line and headers are too long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_whole = False
        self._expect_nothing()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        if len(self.headers) > self.max_headers or self._arriving_bytes > self.max_head_bytes:
            self._refuse_long_head()
        if len(self.pipeline) >= MAX_PIPELINED:
            self._stop_parsing(400, "too many requests were sent before the first of them was answered")
        if not self.is_for_bodies:
            self._expect_nothing()
        if self._may_be_answered_at_once() and (answer := self.find_ready_answer()):
            stand_in: Any = _ANSWERED
            self.cycle, self._is_whole = stand_in, True
            self.transport.writelines(answer)
            self.on_response_complete()
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_whole = True
        self._expect_nothing()
        # What arrived together with the end of a body is no part of the next head.
        self._head_bytes = -self._arriving_bytes
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = self.loop.time()
        if self.pipeline:
            self.flow.pause_reading()
        # The unsent bytes may be too few for a pause; a transport that is closed waits for them without end.
        self._watch_reading()
        if not self._is_whole:
            self.cycle.body.clear()
            # Hanging up at once would reset the connection, and the client might never read why.
            self._expect(self.linger_seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch_reading()

    def find_ready_answer(self) -> tuple[bytes, bytes] | None:
        """Find head and body of the answer to the request whose head is complete; None where the application
        answers."""
        return None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        self.refuse(*self._refusal)

    def refuse(self, status: int, cause: str) -> None:
        """Answer so and hang up; without an answer where the client waits for that to an earlier request."""
        transport: Any = self.transport
        cycle = self.cycle
        is_next = cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started)
        if is_next and not self.pipeline:
            transport.write(self.build_refusal(status, cause))
            transport.close()
        else:
            transport.abort()

    def build_refusal(self, status: int, cause: str) -> bytes:
        """Build the complete answer of a refusal."""
        body = f"{cause}\n".encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body

    def _may_be_answered_at_once(self) -> bool:
        """Tell whether the request is a GET without a body, on a connection that stays open and takes answers now."""
        parser: Any = self.parser
        return (
            parser.get_method() == b"GET"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and (self.cycle is None or self.cycle.response_complete)
            and not (self.flow.write_paused or self.transport.is_closing())
            and _ABOUT_A_BODY.isdisjoint(dict(self.headers))
        )

    @property
    def _is_awaited(self) -> bool:
        """Tell whether the client has to act next: send a request or take an answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def _make_place(self, max_connections: int) -> None:
        others = [other for other in cast("Collection[Self]", self.connections) if other is not self]
        awaited = [other for other in others if other._is_awaited and not other.transport.is_closing()]
        if not awaited:
            self.refuse(503, "too many requests are being answered; ask again")
        # Some at once: to look for one takes as long.
        for connection in nsmallest(max_connections // 20 + 1, awaited, key=lambda other: other._since):
            connection._hang_up()

    def _refuse_long_head(self) -> None:
        """Stop parsing if the head that is complete now is too long: it may have arrived at once."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.max_head_bytes or len(self.headers) > self.max_headers:
            self._stop_parsing(431, "the request's line and headers are too long")

    def _stop_parsing(self, status: int, cause: str) -> None:
        self._refusal = status, cause
        raise _RefusedError

    def _expect(self, seconds: float) -> None:
        self._expect_nothing()
        self._sending = self.loop.call_later(seconds, self._hang_up)

    def _expect_nothing(self) -> None:
        if self._sending:
            self._sending.cancel()
            self._sending = None

    def _hang_up(self) -> None:
        transport: Any = self.transport
        transport.abort()

    def _watch_reading(self) -> None:
        self._stop_watching()
        transport: Any = self.transport
        if unsent := transport.get_write_buffer_size():
            self._reading = self.loop.call_later(self.reading_seconds, self._hang_up_unless_read, unsent)

    def _hang_up_unless_read(self, unsent: int) -> None:
        transport: Any = self.transport
        if transport.get_write_buffer_size() > max(unsent - self.reading_bytes, 0):
            transport.abort()
        else:
            self._watch_reading()

    def _stop_watching(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None
