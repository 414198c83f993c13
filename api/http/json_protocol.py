"""Answers bytes that can't be parsed as HTTP in JSON; such a request never reaches the application."""

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from schemas.answers.attempts import Error

_CAUSE: Final = "the bytes received are not a valid HTTP request"
_NEXT: Final = (
    "Percent-encode all characters of the URL that are not ASCII, and speak plain HTTP, not TLS, to this port."
)


class JsonProtocol(HttpToolsProtocol):
    """uvicorn's parser, which would answer such bytes with plain text."""

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        body = Error(error=_CAUSE, next=_NEXT).model_dump_json().encode()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        transport: Any = self.transport
        # The parser has lost the boundary between requests, so the connection can't be used again.
        transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        transport.close()
