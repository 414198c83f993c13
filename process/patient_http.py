"""uvicorn's HTTP protocol with the bounds that it lacks, for every server of ours that others may reach.

A request's line and headers are bounded. Hung up on is who takes too long to send a request, who takes an answer too
slowly, and who continues to send a body that was refused.
"""

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES: Final = 64 * 1024
"""Bound of a request's line and headers, unless they arrive at once; a token has 16 KiB at most."""
REQUEST_SECONDS: Final = 10.0
"""From the beginning of a connection, or of a request on it, to the end of the request, or of its headers. For the TLS
handshake as well, for which asyncio gives a minute.
"""


def bound_handshakes() -> None:
    """Give clients of this process ``REQUEST_SECONDS`` for the TLS handshake; asyncio's own loops read that."""
    # uvicorn has no setting for it.
    asyncio.constants.SSL_HANDSHAKE_TIMEOUT = REQUEST_SECONDS  # type: ignore[attr-defined]


class PatientHttp(HttpToolsProtocol):
    """Refuses a request by ``refuse_head`` where its line and headers are too long."""

    request_seconds: ClassVar[float] = REQUEST_SECONDS
    is_for_bodies: ClassVar[bool] = True
    """Whether ``request_seconds`` include the body; otherwise the application waits for it as long as it likes."""
    reading_seconds: ClassVar[float] = 30.0
    """A client is hung up on that takes less than ``reading_bytes`` of an answer in this time, and does not take all
    that is left. A watch has a shorter limit of its own.
    """
    reading_bytes: ClassVar[int] = 16 * 1024
    linger_seconds: ClassVar[float] = 3.0
    """What a client gets to stop sending a body that was answered before its end."""

    _head_bytes: int | None = 0
    """Received of a head that is not complete; None while none is expected."""
    _arriving_bytes: int = 0
    """Size of what is being parsed now."""
    _is_whole = True
    _sending: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect(self.request_seconds)

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
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_whole = False
        self._expect_nothing()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        if not self.is_for_bodies:
            self._expect_nothing()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_whole = True
        self._expect_nothing()
        # What arrived together with the end of a body is no part of the next head.
        self._head_bytes = -self._arriving_bytes
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # What is left may be too little for a pause; a transport that is closed waits for it without end.
        self._watch_reading()
        if not self._is_whole:
            # Hanging up at once would reset the connection, and the client might never read why.
            self._expect(self.linger_seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch_reading()

    def refuse_head(self) -> None:
        """Answer 431 and hang up."""
        transport: Any = self.transport
        body = b"the request's line and headers are too long\n"
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
        transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        transport.close()

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
