"""uvicorn's HTTP protocol with a bound on a request's line and headers, which it keeps in memory without one."""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES: Final = 64 * 1024
"""Bound of a request's line and headers, unless they arrive at once; a token has 16 KiB at most."""


class BoundedHead(HttpToolsProtocol):
    """Refuses a request by ``refuse_head`` where its line and headers are longer."""

    _head_bytes: int | None = 0
    """Received of a head that is not complete; None while none is expected."""
    _arriving_bytes: int = 0
    """Size of what is being parsed now."""

    def data_received(self, data: bytes) -> None:
        self._arriving_bytes = len(data)
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.refuse_head()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        # What arrived together with the end of a body is no part of the next head.
        self._head_bytes = -self._arriving_bytes
        super().on_message_complete()

    def refuse_head(self) -> None:
        """Answer 431 and hang up."""
        transport: Any = self.transport
        body = b"the request's line and headers are too long\n"
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
        transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        transport.close()
